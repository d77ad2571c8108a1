// A serial line behind a device server on TCP. Units answer in the order of requests, mostly far too late, or not at
// all.
// The device server sends every answer to the client that is connected at that time.
import { createServer, type Socket } from "node:net";
import { rtuCodec } from "../../src/source/modbus/framing/bus-codec.ts";
import { honestWord } from "./modbus-adversary.ts";

export interface SlowLineOptions {
  /** Reproducible numbers from 0 to below 1. */
  readonly random: () => number;
  /** The maximum time of a unit for one answer, in milliseconds. */
  readonly longestMs: number;
}

export interface SlowLine extends AsyncDisposable {
  readonly url: string;
  /** The number of requests so far. */
  readonly asked: number;
}

/** Holding registers contain the adversary's correct values; the other tables do not exist. */
export async function modbusSlowLine({ random, longestMs }: SlowLineOptions): Promise<SlowLine> {
  let connected: Socket | undefined;
  let asked = 0;
  let closed = false;
  /** By unit: settles when the previous answer has been sent. */
  const queues = new Map<number, Promise<void>>();
  const answer = (request: Buffer) => {
    const [unit = 0, code = 0] = request;
    const start = request.readUInt16BE(2);
    const count = request.readUInt16BE(4);
    const words = Array.from({ length: count }, (_, i) => honestWord(start + i)).flatMap((word) => [
      word >> 8,
      word & 0xff,
    ]);
    const pdu = code === 3 ? Uint8Array.of(3, 2 * count, ...words) : Uint8Array.of(code | 0x80, 1);
    const kind = random();
    // Lost, in time, or late.
    if (kind < 0.05) return;
    const ms = kind < 0.6 ? 0 : random() * longestMs;
    const before = queues.get(unit) ?? Promise.resolve();
    queues.set(
      unit,
      before.then(async () => {
        if (ms > 0 && !closed) await new Promise((resolve) => setTimeout(resolve, ms));
        connected?.write(rtuCodec.encode({ unit, pdu }));
      }),
    );
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connected = socket;
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("data", (chunk) => {
      for (let at = 0; at + 8 <= chunk.length; at += 8, asked++) answer(chunk.subarray(at, at + 8));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    url: `rtu+tcp://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    get asked() {
      return asked;
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
