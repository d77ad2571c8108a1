// Whether a server can be reached at all: asked by itself, since a call to a dead network waits as long as a slow server may take.
import { connect } from "node:net";
import { AgentError } from "../../../core/errors.ts";
import { bounded } from "./client.ts";

/** A SYN is sent after 0 and 1 s; after 3 s a new attempt is quicker than the third repetition. */
const connectWithinMs = 3_000;

/** Resolves once a TCP connection stands, which is closed at once. Rejects with `SOURCE_UNREACHABLE` or `signal.reason`. */
export async function assertReachable(url: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
  const [, literal, name, port] = /^opc\.tcp:\/\/(?:\[([^\]]+)\]|([^/:]+)):(\d+)/.exec(url) ?? [];
  const host = literal ?? name;
  if (host === undefined) throw new AgentError("SOURCE_UNREACHABLE", `${url} is no address`);
  const socket = connect({ host, port: Number(port) });
  try {
    await bounded(`connecting to ${url}`, Math.min(timeoutMs, connectWithinMs), signal, async () => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      socket.once("connect", resolve);
      socket.once("error", reject);
      await promise;
    });
  } finally {
    socket.on("error", () => {});
    socket.destroy();
  }
}
