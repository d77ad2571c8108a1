// Devices on a shared bus: replies are duplicated, as over a radio link, and another master reads. Encodes its frames
// itself, from the specification, independently of the code under test. Seeded.
import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";

export type Wire = "mbap" | "rtu" | "ascii";

export interface Disturbances {
  /** Repeats each reply after this many milliseconds. */
  readonly repeatMs?: number;
  /** The share of the driver's requests during which another master reads other registers of the same unit; 0 to 1. */
  readonly foreign?: number;
  /** The possible numbers of registers that it reads; default: as many as the driver. */
  readonly foreignCounts?: readonly number[];
  /** The share of its requests that the driver receives; default 0.5. A gateway passes on none, a line all. */
  readonly received?: number;
  /** The share of the driver's requests that are lost once the disturbance has shown; default 0. */
  readonly lost?: number;
  /** The maximum number of registers per request. More are refused with exception 3. Default: any number. */
  readonly most?: number;
  /** The maximum time of a unit for an answer; default 5 ms. */
  readonly slowestMs?: number;
}

/**
 * After this many reads of another master the disturbance has shown; without another master, after this many requests.
 */
const shownAfter = { foreign: 20, asked: 100 };

export interface DisturbedBus {
  /** Receives bytes of the driver. `send` sends bytes to it, now or later. */
  receive(bytes: Uint8Array, send: (bytes: Uint8Array) => void): void;
  /** The number of requests so far. */
  readonly asked: number;
  /** The number of repeated replies, and of reads of another master. */
  readonly repeated: number;
  readonly foreign: number;
}

/** The constant value of register `address` of `unit`. The first thousand values are distinct. */
export function wordOf(unit: number, address: number): number {
  return (unit * 7_919 + address * 61) & 0xff_ff;
}

export function disturbedBus(
  wire: Wire,
  { repeatMs, foreign = 0, foreignCounts = [], received = 0.5, lost = 0, most, slowestMs = 5 }: Disturbances,
  random: () => number,
  later: (ms: number, then: () => void) => void,
): DisturbedBus {
  let buffered = Buffer.alloc(0);
  let asked = 0;
  let repeated = 0;
  let others = 0;

  const reply = (unit: number, code: number, start: number, count: number) => {
    if (count > (most ?? count)) return Buffer.from([unit, code | 0x80, 3]);
    const words = Array.from({ length: count }, (_, i) => wordOf(unit, start + i));
    return Buffer.from([unit, code, 2 * count, ...words.flatMap((word) => [word >> 8, word & 0xff])]);
  };
  const isShown = () => (foreign > 0 ? others >= shownAfter.foreign : asked >= shownAfter.asked);

  return {
    get asked() {
      return asked;
    },
    get repeated() {
      return repeated;
    },
    get foreign() {
      return others;
    },
    receive(bytes, send) {
      buffered = Buffer.concat([buffered, bytes]);
      for (;;) {
        const found = takeRequest(wire, buffered);
        if (!found) return;
        buffered = buffered.subarray(found.end);
        asked++;
        const { id, adu } = found;
        const [unit = 0, code = 0] = adu;
        const start = adu.readUInt16BE(2);
        const count = adu.readUInt16BE(4);
        const answer = (ms: number, frame: Buffer) => {
          later(ms, () => send(frame));
          if (repeatMs === undefined) return;
          repeated++;
          later(ms + repeatMs, () => send(frame));
        };
        const elsewhere = () => {
          others++;
          // With the driver's ID and length it could not be told from the driver's answer.
          const foreignId = (id + 20_000 + Math.floor(random() * 20_000)) & 0xff_ff;
          const place = start ^ (256 + Math.floor(random() * 16));
          const many = foreignCounts[Math.floor(random() * foreignCounts.length)] ?? count;
          const request = Buffer.from([unit, code, place >> 8, place & 0xff, many >> 8, many & 0xff]);
          const ms = random() * slowestMs;
          const isReceived = random() < received;
          return (from: number) => {
            if (isReceived) later(from, () => send(frameOf(wire, foreignId, request)));
            answer(from + ms, frameOf(wire, foreignId, reply(unit, code, place, many)));
            return from + ms;
          };
        };
        let at = 0;
        // Before or after the answer to the driver, or both.
        if (random() < foreign) at = elsewhere()(at);
        at += random() * slowestMs;
        if (random() >= lost || !isShown()) answer(at, frameOf(wire, id, reply(unit, code, start, count)));
        if (random() < foreign) elsewhere()(at + 1);
      }
    },
  };
}

/** The request at the start of `bytes`, and the offset of its end. */
function takeRequest(wire: Wire, bytes: Buffer): { id: number; adu: Buffer; end: number } | undefined {
  if (wire === "mbap") {
    if (bytes.length < 12) return undefined;
    return { id: bytes.readUInt16BE(0), adu: bytes.subarray(6, 12), end: 12 };
  }
  if (wire === "rtu") return bytes.length < 8 ? undefined : { id: 0, adu: bytes.subarray(0, 6), end: 8 };
  const end = bytes.indexOf("\r\n");
  if (end < 0) return undefined;
  return { id: 0, adu: Buffer.from(bytes.toString("latin1", 1, end), "hex").subarray(0, 6), end: end + 2 };
}

function frameOf(wire: Wire, id: number, adu: Buffer): Buffer {
  if (wire === "mbap") return Buffer.concat([Buffer.from([id >> 8, id & 0xff, 0, 0, 0, adu.length]), adu]);
  if (wire === "rtu") {
    let remainder = 0xff_ff;
    for (const byte of adu)
      for (let bit = 0; bit < 8; bit++) {
        const carry = (remainder ^ (byte >> bit)) & 1;
        remainder = (remainder >> 1) ^ (carry * 0xa0_01);
      }
    return Buffer.concat([adu, Buffer.from([remainder & 0xff, remainder >> 8])]);
  }
  const sum = adu.reduce((total, byte) => total + byte, 0);
  return Buffer.from(`:${adu.toString("hex")}${(-sum & 0xff).toString(16).padStart(2, "0")}\r\n`.toUpperCase());
}

const afterMs = (ms: number, then: () => void) => void setTimeout(then, ms).unref();

export interface DisturbedServer extends AsyncDisposable {
  /** Host and port. */
  readonly place: string;
  readonly port: number;
  readonly bus: DisturbedBus;
}

/** The bus behind a TCP gateway that passes everything it receives to its only connection. */
export async function disturbedTcp(
  wire: Wire,
  disturbances: Disturbances,
  random: () => number,
): Promise<DisturbedServer> {
  const bus = disturbedBus(wire, disturbances, random, afterMs);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    // Chunks in transit reach the client that is connected when they arrive.
    const send = (bytes: Uint8Array) => {
      for (const each of sockets) if (!each.destroyed) each.write(bytes);
    };
    socket.on("data", (chunk) => bus.receive(chunk, send));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    place: `127.0.0.1:${port}`,
    port,
    bus,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** The same over UDP. */
export async function disturbedUdp(disturbances: Disturbances, random: () => number): Promise<DisturbedServer> {
  const bus = disturbedBus("mbap", disturbances, random, afterMs);
  const socket = createSocket("udp4");
  let open = true;
  socket.on("message", (bytes, { port, address }) =>
    bus.receive(bytes, (frame) => {
      if (open) socket.send(frame, port, address);
    }),
  );
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  return {
    place: `127.0.0.1:${port}`,
    port,
    bus,
    async [Symbol.asyncDispose]() {
      open = false;
      await new Promise<void>((resolve) => socket.close(resolve));
    },
  };
}
