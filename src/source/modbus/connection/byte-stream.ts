// A way to send bytes and be told of bytes that come: a socket or a serial port, whatever it is made of.

import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";

export interface ByteStreamListener {
  /** The chunk is the listener's only during the call. */
  data(chunk: Uint8Array): void;
  /** Nothing comes any more. Called once, also when it had happened before `listen`; not after disposal. */
  closed(error: AgentError): void;
}

/** Open when created. Disposing closes at once, without waiting for the other side. */
export interface ByteStream extends AsyncDisposable {
  /** Called once, before the first `write`. */
  listen(listener: ByteStreamListener): void;
  write(bytes: Uint8Array): void;
  /** Whether an answer is being waited for now. */
  awaiting?(yes: boolean): void;
}

// A TCP connection as a byte stream. Connecting has its own deadline, and a socket that comes too late is closed.

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

const nameFaults: Readonly<Record<string, string>> = {
  ENOTFOUND: "the host name cannot be resolved",
  EAI_AGAIN: "the host name cannot be resolved",
};
const meanings: Readonly<Record<string, string>> = {
  ...nameFaults,
  ECONNREFUSED: "the connection was refused: nothing listens there, or the device has no connection left",
  ECONNRESET: "the device reset the connection",
  EHOSTUNREACH: "there is no route to the device",
  ENETUNREACH: "there is no route to the device",
  ETIMEDOUT: "the device does not answer any more",
};

// A UDP socket as a stream of datagrams. There is no connection that could fail: only what the system reports is known.

/** Resolves once the socket is bound and takes datagrams of the device alone. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export async function openUdp(
  { host, port, localAddress }: Omit<TcpOptions, "timeoutMs">,
  signal: AbortSignal,
): Promise<ByteStream> {
  const unreachable = (cause: unknown) =>
    new AgentError("SOURCE_UNREACHABLE", `${host}:${port}: ${inUdpWords(cause)}`, { cause });
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

function inUdpWords(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? String(cause.code) : "";
  return code === "ECONNREFUSED" ? "nothing listens on this UDP port" : (nameFaults[code] ?? cause.message);
}
