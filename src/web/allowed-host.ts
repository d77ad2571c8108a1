// Which Host headers are answered. A page on another site can make its own name point here (DNS rebinding), but it
// cannot choose the Host header that the browser then sends. Pure.
import { isIP } from "node:net";

const loopback = ["localhost", "127.0.0.1", "::1"];
const wildcards = ["0.0.0.0", "::"];

/**
 * Whether a request with this Host header is meant for us: loopback, the address we listen on, or one of `allowed`
 * (names without port). Listening on every address, any IP address will do: rebinding needs a name.
 */
export function isAllowedHost(header: string | undefined, listenHost: string, allowed: readonly string[]): boolean {
  const host = hostOf(header ?? "");
  if (host === undefined) return false;
  if (loopback.includes(host) || host === listenHost.toLowerCase()) return true;
  if (allowed.some((name) => name.toLowerCase() === host)) return true;
  return wildcards.includes(listenHost) && isIP(host) !== 0;
}

/** `name:8421`, `[::1]:8421` → name or address in lower case. Undefined: no Host header at all. */
function hostOf(header: string): string | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/@\s[\]]+))(?::\d{1,5})?$/.exec(header);
  return (match?.[1] ?? match?.[2])?.toLowerCase();
}
