// Sources that poll the adversary over real sockets, and the faults of their readings.
import { createServer } from "node:net";
import { isAgentError } from "../../src/core/errors.ts";
import type { Reading } from "../../src/core/source.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { type Adversary, type AdversaryOptions, adversary, honestWord, mbapFrame } from "./modbus-adversary.ts";
import { modbusConfig } from "./modbus-source.ts";
import { seed } from "./property.ts";
import { seeded, type TestRuntime, testRuntime } from "./runtime.ts";

/**
 * Misbehaviours after which the connection is unusable. Without them it stays open, and a new one cannot hide a hung
 * poll.
 */
const endsConnection = ["short", "lyingLength", "flipped", "garbage", "otherProtocol", "reset"];

export interface AdversaryServer extends AsyncDisposable {
  readonly url: string;
  readonly done: Adversary["done"];
}

/** A server that answers every request through the adversary. */
export async function adversaryServer(seedOfDevice: number, options: AdversaryOptions = {}): Promise<AdversaryServer> {
  const device = adversary(mbapFrame, seeded(seedOfDevice), { honesty: 0.8, ...options });
  const server = createServer((socket) => {
    device.reconnected();
    let received = Buffer.alloc(0);
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      for (; received.length >= 12; received = received.subarray(12)) {
        const { chunks, reset } = device.answer({
          id: received.readUInt16BE(0),
          unit: received.readUInt8(6),
          start: received.readUInt16BE(8),
          count: received.readUInt16BE(10),
        });
        for (const piece of chunks) socket.write(piece);
        if (reset) socket.resetAndDestroy();
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address ? address.port : 0;
  return {
    url: `tcp://127.0.0.1:${port}`,
    done: device.done,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

// Separate blocks of one and of two registers.
const tags = Array.from({ length: 40 }, (_, i) => ({
  at: `hr:${i * 20} ${i % 2 ? "u16" : "u32"}`,
  unit: 1 + (i % 20),
}));

/** The fault of a reading, if it has one. */
function faultOf({ tag, value, quality, reason }: Reading): string | undefined {
  const start = tag * 20;
  const right = tag % 2 ? honestWord(start) : honestWord(start) * 65_536 + honestWord(start + 1);
  if (quality === "good") return value === right ? undefined : `tag ${tag} is ${value} instead of ${right}`;
  return value === undefined && reason ? undefined : `tag ${tag} is ${value}, which is ${quality}: ${reason}`;
}

export interface Endured {
  /** Descriptions of wrong readings. */
  readonly faults: readonly string[];
  /** The number of connections that were opened. */
  readonly opened: number;
}

export interface Endurance {
  /** Called with each reading. */
  readonly enough: (reading: Reading) => boolean;
  /** Once true, every tag must be read once more before the end, which a hung poll would prevent. */
  readonly lastRound?: () => boolean;
  /** Where the device's quirks are kept across connections; default: nowhere. */
  readonly stateDir?: string;
}

/** Polls until it is enough, and reopens the connection whenever it is lost. Rejects when `signal` aborts before. */
export async function endure(
  url: string,
  { enough, lastRound = () => false, stateDir }: Endurance,
  runtime: TestRuntime,
  signal: AbortSignal,
): Promise<Endured> {
  const config = modbusConfig({ url, timeout: "12ms" }, tags, stateDir);
  const faults: string[] = [];
  const missing = new Set(tags.keys());
  let opened = 0;
  let isEnough = false;
  const isDone = () => isEnough && (missing.size === 0 || !lastRound());
  while (!isDone()) {
    opened++;
    try {
      await using source = await modbusDriver.open(config, runtime, signal);
      for await (const { readings } of source.deliveries(signal)) {
        for (const reading of readings) {
          const fault = faultOf(reading);
          if (fault !== undefined) faults.push(fault);
          if (lastRound()) missing.delete(reading.tag);
          isEnough ||= enough(reading);
        }
        if (isDone()) break;
      }
      if (!isDone()) throw new Error(`nothing came of tags ${[...missing].join(", ")}: ${String(signal.reason)}`);
    } catch (error) {
      if (!isAgentError(error)) throw error;
    }
  }
  return { faults, opened };
}

/**
 * `replies` replies of `devices` adversaries in parallel; every other device keeps its connections. `answered` is the
 * final number of replies.
 */
export async function endureMany({ devices, replies, timeoutMs }: Record<"devices" | "replies" | "timeoutMs", number>) {
  const signal = AbortSignal.timeout(timeoutMs);
  const all = await Promise.all(
    Array.from({ length: devices }, async (_, i) => {
      await using server = await adversaryServer(seed + i, { without: i % 2 ? endsConnection : [] });
      const answered = () => server.done.values().reduce((sum, count) => sum + count, 0);
      const share = replies / devices;
      const enough = () => answered() >= share;
      const lastRound = () => answered() >= share - 2 * tags.length;
      const endured = await endure(server.url, { enough, lastRound }, testRuntime({ seed: seed + i }), signal);
      return { ...endured, answered: answered() };
    }),
  );
  return {
    faults: all.flatMap(({ faults }) => faults),
    opened: all.reduce((sum, { opened }) => sum + opened, 0),
    answered: all.reduce((sum, { answered }) => sum + answered, 0),
  };
}
