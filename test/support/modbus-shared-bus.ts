// Sources that poll a shared bus over every transport, and the faults of their readings.
import { isAgentError } from "../../src/core/errors.ts";
import type { Reading } from "../../src/core/source.ts";
import { modbusDriver } from "../../src/source/modbus/driver.ts";
import { type Disturbances, type DisturbedServer, disturbedTcp, disturbedUdp, wordOf } from "./modbus-disturbed-bus.ts";
import { modbusConfig } from "./modbus-source.ts";
import { peerServer } from "./peer-server.ts";
import { seeded, testRuntime } from "./runtime.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export const transports = ["tcp", "udp", "rtu", "ascii", "rtu+tcp"] as const;
export type Transport = (typeof transports)[number];

/** Blocks of two units, and of two lengths. */
const tags = Array.from({ length: 8 }, (_, i) => ({
  at: `hr:${i * 40} ${i % 4 === 3 ? "u64" : "u32"}`,
  unit: 1 + (i % 2),
}));

function rightValue(tag: number): bigint {
  const width = tag % 4 === 3 ? 4 : 2;
  return Array.from({ length: width }, (_, i) => BigInt(wordOf(1 + (tag % 2), tag * 40 + i))).reduce(
    (value, word) => value * 65_536n + word,
    0n,
  );
}

async function opened(transport: Transport, disturbances: Disturbances, seed: number) {
  const random = seeded(seed);
  if (transport === "udp") {
    const server = await disturbedUdp(disturbances, random);
    return { server, url: `udp://${server.place}`, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }
  const wire = transport === "tcp" ? "mbap" : transport === "ascii" ? "ascii" : "rtu";
  const server: DisturbedServer = await disturbedTcp(wire, disturbances, random);
  if (transport === "tcp" || transport === "rtu+tcp")
    return {
      server,
      url: `${transport}://${server.place}`,
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  // A pseudo terminal replaces the serial line.
  const folder = temporaryFolder();
  const path = folder.file("line");
  const line = await peerServer("sh", [
    "-c",
    `socat PTY,link=${path},raw,echo=0,wait-slave TCP:${server.place},nodelay & while [ ! -e ${path} ]; do sleep 0.02; done; echo ready; cat >/dev/null; kill $!`,
  ]);
  return {
    server,
    url: `${transport}://${path}?baudRate=115200&parity=none&stopBits=1${transport === "ascii" ? "&dataBits=8" : ""}`,
    async [Symbol.asyncDispose]() {
      await line[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

export interface SharedBusResult {
  /** Descriptions of the first ten wrong values. */
  readonly wrong: readonly string[];
  readonly wrongs: number;
  /** The number of correct values. */
  readonly right: number;
  /** The number of readings without a value. */
  readonly without: number;
  readonly asked: number;
  /** The final warnings of the source about the bus. */
  readonly warnings: readonly string[];
  /** The number of log lines about the bus. */
  readonly logged: number;
}

/** Polls until `values` values were read. Rejects when `signal` aborts before. */
export async function pollSharedBus(
  transport: Transport,
  disturbances: Disturbances,
  values: number,
  seed: number,
  signal: AbortSignal,
): Promise<SharedBusResult> {
  await using device = await opened(transport, disturbances, seed);
  const config = modbusConfig({ url: device.url, timeout: "400ms", maxGap: 0 }, tags);
  const runtime = testRuntime({ seed: seed + 1_000_003 });
  const wrong: string[] = [];
  let [wrongs, right, without] = [0, 0, 0];
  let warnings: readonly string[] = [];
  const look = ({ tag, value, quality }: Reading) => {
    if (quality !== "good") without++;
    else if (BigInt(Number(value)) === BigInt(Number(rightValue(tag)))) right++;
    else if (wrongs++ < 10)
      wrong.push(`tag ${tag} is ${String(value)} instead of ${rightValue(tag)}, after ${right} right values`);
  };
  while (right + wrongs < values) {
    try {
      await using source = await modbusDriver.open(config, runtime, signal);
      for await (const { readings } of source.deliveries(signal)) {
        for (const reading of readings) look(reading);
        warnings = source.warnings?.().map(({ message }) => message) ?? [];
        if (right + wrongs >= values) break;
      }
      if (right + wrongs < values) throw new Error(`only ${right} values: ${String(signal.reason)}`);
    } catch (error) {
      if (!isAgentError(error)) throw error;
    }
  }
  const logged = runtime.lines.filter(({ message }) => message === "the bus is disturbed").length;
  return { wrong, wrongs, right, without, asked: device.server.bus.asked, warnings, logged };
}
