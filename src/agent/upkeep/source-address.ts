// Where a source connects, as its options say it.

/** As it stands in the configuration, name and password in it included; undefined: it has none. */
export function sourceAddress(options: object): string | undefined {
  const { url } = options as { readonly url?: unknown }; // what the driver's own schema gave
  // Some drivers take an address apart; they keep its text.
  const text: unknown = typeof url === "object" && url !== null && "text" in url ? url.text : url;
  return typeof text === "string" ? text : undefined;
}
