// An address as it may be shown.

/** `text` without name and password in the addresses in it. A password may hold an `@` itself, or a `/` by mistake. */
export function withoutUser(text: string): string {
  return text.replace(/\/\/\S+@/g, "//***@");
}
