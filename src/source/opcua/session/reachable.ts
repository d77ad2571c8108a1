// Whether a server can be reached at all: asked by itself, since a call into a dead network waits as long as a slow server may
// take. A network that is cut, or a tunnel whose far end is gone, swallows what is sent and says nothing of its healing: the
// greeting is sent again and again, each over a connection of its own, and the first answer to any of them counts. A server that
// takes its time has all of that time for the first one.
//
//   0 s     2 s     4 s     6 s
//   SYN, Hello ............ given up
//           SYN, Hello .... answered: reached
import { connect, type Socket } from "node:net";
import { AgentError } from "../../../core/errors.ts";
import { bounded } from "./client.ts";
import { largestMessageBytes } from "./transport.ts";

const reachWithinMs = 6_000;
const greetEveryMs = 2_000;

/**
 * Resolves once the server has answered a Hello message, whatever it says; hanging up is an answer, too. Nothing stays open.
 * Rejects with `SOURCE_UNREACHABLE` or `signal.reason`.
 */
export async function assertReachable(url: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
  const [, literal, name, port] = /^opc\.tcp:\/\/(?:\[([^\]]+)\]|([^/:]+)):(\d+)/.exec(url) ?? [];
  const host = literal ?? name;
  if (host === undefined) throw new AgentError("SOURCE_UNREACHABLE", `${url} is no address`);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sockets: Socket[] = [];
  const greet = () => {
    const socket = connect({ host, port: Number(port) }, () => {
      socket.write(hello(url));
      socket.on("error", resolve);
    });
    socket.once("error", reject).once("data", resolve).once("end", resolve);
    sockets.push(socket);
  };
  const again = setInterval(greet, greetEveryMs);
  try {
    greet();
    await bounded(`connecting to ${url}`, Math.min(timeoutMs, reachWithinMs), signal, () => promise);
  } finally {
    clearInterval(again);
    for (const socket of sockets) socket.on("error", () => {}).destroy();
  }
}

/** A Hello message (OPC 10000-6, 7.1.2.3). */
function hello(url: string): Buffer {
  const address = Buffer.from(url);
  const message = Buffer.alloc(32 + address.length);
  message.write("HELF", "latin1");
  const [version, buffer, chunks] = [0, 65_536, 0];
  const fields = [message.length, version, buffer, buffer, largestMessageBytes, chunks, address.length];
  for (const [i, field] of fields.entries()) message.writeUInt32LE(field, 4 + 4 * i);
  address.copy(message, 32);
  return message;
}
