// A bidirectional byte stream over a socket or serial port.

import { createSocket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { connect } from "node:net";
import { AgentError, codeOf } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/flow/abort.ts";

export interface ByteStreamListener {
  /** `chunk` is valid only during the call. */
  data(chunk: Uint8Array): void;
  /** The stream has ended. Called once, also if it ended before `listen`; not after disposal. */
  closed(error: AgentError): void;
}

/** Open when created. Disposing closes at once, without waiting for the peer. */
export interface ByteStream extends AsyncDisposable {
  /** Call once, before the first `write`. */
  listen(listener: ByteStreamListener): void;
  write(bytes: Uint8Array): void;
  /** Tells the stream whether an answer is pending. */
  awaiting?(yes: boolean): void;
}

/**
 * Builds a stream from received bytes (`data`) and its end (`lose`). `close` is called once, at the end or on disposal.
 */
export function byteStream(write: (bytes: Uint8Array) => void, close: (isLost: boolean) => Promise<void> | void) {
  let listener: ByteStreamListener | undefined;
  let lost: AgentError | undefined;
  let isOpen = true;
  const stream: ByteStream = {
    listen(given) {
      listener = given;
      if (lost) given.closed(lost);
    },
    write(bytes) {
      if (isOpen) write(bytes);
    },
    async [Symbol.asyncDispose]() {
      if (!isOpen) return;
      isOpen = false;
      await close(false);
    },
  };
  const data = (chunk: Uint8Array) => {
    if (isOpen) listener?.data(chunk);
  };
  const lose = (error: AgentError) => {
    if (!isOpen) return;
    isOpen = false;
    lost = error;
    void close(true);
    listener?.closed(error);
  };
  return { stream, data, lose };
}

// A TCP connection as a byte stream. Connecting has a deadline; a socket that connects later is closed.

export interface TcpOptions {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string | undefined;
  readonly timeoutMs: number;
}

const keepAliveMs = 15_000;

/** Resolves once connected. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export async function connectTcp(
  { host, port, localAddress, timeoutMs }: TcpOptions,
  signal: AbortSignal,
): Promise<ByteStream> {
  signal.throwIfAborted();
  const peer = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const keepingAlive = { keepAlive: true, keepAliveInitialDelay: keepAliveMs };
  const socket = connect({ host, port, noDelay: true, ...keepingAlive, localAddress });
  const { stream, data, lose } = byteStream(
    (bytes) => socket.write(bytes),
    () => void socket.destroy(),
  );
  const connected = Promise.withResolvers<void>();
  const fail = (text: string, more: { readonly cause?: Error; readonly hint?: string } = {}) => {
    const error = new AgentError("SOURCE_UNREACHABLE", text, more);
    connected.reject(error); // no effect once connected
    lose(error);
  };
  socket.on("error", (cause) => {
    const hint = codeOf(cause) === "ECONNRESET" ? { hint: fewConnections } : {};
    fail(`${peer}: ${inWords(cause, tcpFaults)}`, { cause, ...hint });
  });
  // A peer that closes its side sends nothing more; a half-open connection would hang every request.
  socket.on("end", () => fail(`${peer} closed the connection`, { hint: fewConnections }));
  socket.on("close", () => fail(`the connection to ${peer} is gone`));
  socket.on("data", data);
  socket.on("connect", () => connected.resolve());
  const timer = setTimeout(() => fail(`${peer} did not answer within ${timeoutMs} ms`), timeoutMs);
  return await whenReady(connected.promise, stream, signal).finally(() => clearTimeout(timer));
}

/** Resolves with `stream` after `ready`. Closes it on a rejection or abort. */
async function whenReady(ready: Promise<void>, stream: ByteStream, signal: AbortSignal): Promise<ByteStream> {
  try {
    await orAbort(ready, signal);
    return stream;
  } catch (error) {
    await stream[Symbol.asyncDispose]();
    throw error;
  }
}

function inWords(error: unknown, meanings: Readonly<Record<string, string>>): string {
  return meanings[String(codeOf(error))] ?? ((error instanceof Error && error.message) || "connecting failed");
}

/** Devices usually accept 1 to 5 connections and close further ones. */
const fewConnections =
  "something listens there, so address and port may be right; the device may allow fewer connections than there are clients: end one of the others";

const udpFaults = {
  ENOTFOUND: "the host name cannot be resolved",
  EAI_AGAIN: "the host name cannot be resolved",
  ECONNREFUSED: "nothing listens on this UDP port",
};
const tcpFaults = {
  ...udpFaults,
  ECONNREFUSED: "the connection was refused: nothing listens there, or the device has no connection left",
  ECONNRESET: "the device reset the connection",
  EHOSTUNREACH: "there is no route to the device",
  ENETUNREACH: "there is no route to the device",
  ETIMEDOUT: "the device does not answer any more",
};

// A UDP socket as a stream of datagrams. It fails only if the system reports an error.

/** Resolves once the socket is bound to the device. Rejects with `SOURCE_UNREACHABLE` or `signal.reason`. */
export async function openUdp(
  { host, port, localAddress }: Omit<TcpOptions, "timeoutMs">,
  signal: AbortSignal,
): Promise<ByteStream> {
  const unreachable = (cause: unknown) =>
    new AgentError("SOURCE_UNREACHABLE", `${host}:${port}: ${inWords(cause, udpFaults)}`, { cause });
  const { address, family } = await orAbort(lookup(host), signal).catch((error: unknown) => {
    throw signal.aborted ? signal.reason : unreachable(error);
  });
  const socket = createSocket(family === 6 ? "udp6" : "udp4");
  const { stream, data, lose } = byteStream(
    (bytes) => socket.send(bytes, () => {}), // a failure shows as the time-out of the request
    () => new Promise<void>((resolve) => socket.close(resolve)).catch(() => {}),
  );
  const connected = Promise.withResolvers<void>();
  socket.on("error", (cause) => {
    const error = unreachable(cause);
    connected.reject(error);
    lose(error);
  });
  socket.on("message", data);
  if (localAddress !== undefined) socket.bind(0, localAddress);
  // A connected socket accepts datagrams only from the device, and reports a closed port.
  socket.connect(port, address, () => connected.resolve());
  return await whenReady(connected.promise, stream, signal);
}
