// Which base addresses are this service: the one it listens on, and the one a client wrote into its request.

/**
 * Whether `audience` is the base address of the service, with or without its last slash, for a request that was sent to
 * `host` (the Host header). The scheme is not compared: a proxy in front may have ended TLS.
 */
export function isOwnAudience(audience: string, host: string | undefined, origin: string): boolean {
  const url = URL.parse(audience);
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname.replace(/\/$/, "") !== "/v1" || url.search !== "")
    return false;
  if (url.host === host?.toLowerCase()) return true;
  const own = new URL(origin);
  return url.host === own.host || (url.port === own.port && isLoopback(url.hostname) && isLoopback(own.hostname));
}

/** The form in which addresses are compared and put into tokens. */
export function canonicalAudience(audience: string): string {
  return audience.endsWith("/") ? audience : `${audience}/`;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
}
