// A UDP socket as a stream of datagrams. There is no connection that could fail: only what the system reports is known.
import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";
import type { ByteStream, ByteStreamListener } from "./byte-stream.ts";

export interface UdpOptions {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string | undefined;
}

/** Resolves once the socket is bound and takes datagrams of the device alone. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export async function openUdp({ host, port, localAddress }: UdpOptions, signal: AbortSignal): Promise<ByteStream> {
  const unreachable = (cause: unknown) =>
    new AgentError("SOURCE_UNREACHABLE", `${host}:${port}: ${inWords(cause)}`, { cause });
  const { address, family } = await orAbort(lookup(host), signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : unreachable(error);
  });
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  let listener: ByteStreamListener | undefined;
  let lost: AgentError | undefined;
  const connected = Promise.withResolvers<void>();
  socket.on("error", (error) => {
    lost ??= unreachable(error);
    connected.reject(lost);
    listener?.closed(lost);
  });
  socket.on("message", (message) => listener?.data(message));
  if (localAddress !== undefined) socket.bind(0, localAddress);
  // A connected socket lets nothing in that does not come from the device, and hears when its port is closed.
  socket.connect(port, address, () => connected.resolve());
  try {
    await orAbort(connected.promise, signal);
  } catch (error) {
    socket.close();
    throw error;
  }
  return {
    listen(given) {
      listener = given;
      if (lost) given.closed(lost);
    },
    write(bytes) {
      if (!lost) socket.send(bytes, () => {}); // a failure shows as the time-out of the request
    },
    async [Symbol.asyncDispose]() {
      if (!lost) lost = unreachable("closed");
      listener = undefined;
      await new Promise<void>((resolve) => socket.close(resolve)).catch(() => {});
    },
  };
}

function inWords(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? cause.code : undefined;
  if (code === "ECONNREFUSED") return "nothing listens on this UDP port";
  return code === "ENOTFOUND" || code === "EAI_AGAIN" ? "the host name cannot be resolved" : cause.message;
}
