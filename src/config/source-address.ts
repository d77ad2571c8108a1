/** The `url` option as configured, including credentials. Undefined: the source has none. */
export function sourceAddress(options: object): string | undefined {
  const { url } = options as { readonly url?: unknown }; // validated by the driver's schema
  // Some drivers parse the address and keep its text.
  const text: unknown = typeof url === "object" && url !== null && "text" in url ? url.text : url;
  return typeof text === "string" ? text : undefined;
}
