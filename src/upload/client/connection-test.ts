// Finds out without a request whether a service accepts connections.
import { once } from "node:events";
import { connect, type LookupFunction } from "node:net";
import type { Secret } from "../../core/secret.ts";
import { deadline } from "../../lib/flow/abort.ts";

/** Slower connections are left to the requests. */
const withinMs = 1_000;

export interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** Where connections for requests to `url` go: to the proxy if there is one. */
export function peerOf(url: string, proxy?: Secret): PeerAddress {
  const { protocol, hostname, port } = new URL(proxy?.reveal() ?? url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (protocol === "https:" ? 443 : 80) };
}

/** Whether the peer accepts a TCP connection within 1 s. Rejects with `signal.reason` only. */
export async function acceptsConnections(
  peer: PeerAddress,
  signal: AbortSignal,
  lookup?: LookupFunction,
): Promise<boolean> {
  using limit = deadline(withinMs, signal, () => new Error("no connection in time"));
  const socket = connect({ ...peer, ...(lookup && { lookup }) });
  try {
    await once(socket, "connect", { signal: limit.signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  } finally {
    // Ignores later errors of the closed connection.
    socket.on("error", () => {}).destroy();
  }
}
