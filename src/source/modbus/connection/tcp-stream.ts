// A TCP connection as a byte stream. Connecting has its own deadline, and a socket that comes too late is closed.
import { connect } from "node:net";
import { AgentError } from "../../../core/errors.ts";
import type { ByteStream, ByteStreamListener } from "./byte-stream.ts";

export interface TcpOptions {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string | undefined;
  readonly timeoutMs: number;
}

const keepAliveMs = 15_000;

/** Resolves once connected. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export function connectTcp(
  { host, port, localAddress, timeoutMs }: TcpOptions,
  signal: AbortSignal,
): Promise<ByteStream> {
  const peer = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    let listener: ByteStreamListener | undefined;
    let lost: AgentError | undefined;
    let disposed = false;
    const socket = connect({
      host,
      port,
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: keepAliveMs,
      ...(localAddress === undefined ? {} : { localAddress }),
    });
    const lose = (error: AgentError) => {
      if (lost || disposed) return;
      lost = error;
      socket.destroy();
      settle();
      reject(error); // without effect once connected
      listener?.closed(error);
    };
    const abort = () => {
      disposed = true;
      socket.destroy();
      settle();
      reject(signal.reason);
    };
    const timer = setTimeout(
      () => lose(new AgentError("SOURCE_UNREACHABLE", `${peer} did not answer within ${timeoutMs} ms`)),
      timeoutMs,
    );
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    };
    signal.addEventListener("abort", abort, { once: true });

    socket.on("error", (cause: NodeJS.ErrnoException) =>
      lose(new AgentError("SOURCE_UNREACHABLE", `${peer}: ${inWords(cause)}`, { cause, ...hintOf(cause) })),
    );
    // A peer that closes its side has nothing more to say; a half-open connection would hang every request.
    socket.on("end", () =>
      lose(new AgentError("SOURCE_UNREACHABLE", `${peer} closed the connection`, { hint: fewConnections })),
    );
    socket.on("close", () => lose(new AgentError("SOURCE_UNREACHABLE", `the connection to ${peer} is gone`)));
    socket.on("data", (chunk) => {
      if (!disposed && !lost) listener?.data(chunk);
    });
    socket.on("connect", () => {
      settle();
      resolve({
        listen(given) {
          listener = given;
          if (lost) given.closed(lost);
        },
        write(bytes) {
          if (!lost && !disposed) socket.write(bytes);
        },
        async [Symbol.asyncDispose]() {
          disposed = true;
          socket.destroy();
        },
      });
    });
  });
}

function inWords(error: NodeJS.ErrnoException): string {
  return meanings[error.code ?? ""] ?? (error.message || "connecting failed");
}

/** Devices accept 1 to 5 connections as a rule, and end one that is too many. */
const fewConnections =
  "something listens there, so address and port may be right; the device may allow fewer connections than there are clients: end one of the others";

function hintOf({ code }: NodeJS.ErrnoException): { readonly hint?: string } {
  return code === "ECONNRESET" ? { hint: fewConnections } : {};
}

const meanings: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused: nothing listens there, or the device has no connection left",
  ECONNRESET: "the device reset the connection",
  ENOTFOUND: "the host name cannot be resolved",
  EAI_AGAIN: "the host name cannot be resolved",
  EHOSTUNREACH: "there is no route to the device",
  ENETUNREACH: "there is no route to the device",
  ETIMEDOUT: "the device does not answer any more",
};
