// The cost of polling, in rounds, with medians. Figures and machine: README of src/source/modbus.
// `node test/bench/modbus/modbus.bench.ts requests [rounds]`: requests a second and processor time, compared with a
// bare loop of the library;
// `node --max-semi-space-size=4 test/bench/modbus/modbus.bench.ts devices [rounds]`: processor time and memory of a
// process that polls 100 devices for 15,000 tags a second, 10 s a round;
// `… gateway [rounds]`: 100 units behind one gateway, 10 of them dead, 30 s a round.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { streamExchange } from "../../../src/source/modbus/connection/exchange.ts";
import { openModbusConnection } from "../../../src/source/modbus/connection/modbus-connection.ts";
import { MbapFraming } from "../../../src/source/modbus/framing/mbap-framing.ts";
import { connectTcp } from "../../../src/source/modbus/transport/byte-stream.ts";
import { modbusDevice } from "../../support/modbus-device.ts";
import { openModbusSource } from "../../support/modbus-source.ts";
import { testRuntime } from "../../support/runtime.ts";

const { signal } = new AbortController();
const seconds = 2;
const mode = process.argv[2];
const rounds = Number(process.argv[3] ?? 5);

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
}

async function withDevices<T>(count: number, use: (urls: readonly string[]) => Promise<T>): Promise<T> {
  const child = fork(join(import.meta.dirname, "devices.ts"), [String(count)]);
  const [urls] = (await once(child, "message")) as [readonly string[]]; // sent by devices.ts
  try {
    return await use(urls);
  } finally {
    child.disconnect();
  }
}

/**
 * Reads ten blocks of 100 registers repeatedly with `block`. Returns requests a second, and processor time per request.
 */
async function speedOf(block: (start: number) => Promise<unknown>): Promise<{ perSecond: number; micros: number }> {
  for (let i = 0; i < 2_000; i++) await block((i % 10) * 100);
  const start = performance.now();
  const cpu = process.cpuUsage();
  let requests = 0;
  while (performance.now() - start < seconds * 1_000) for (let i = 0; i < 10; i++, requests++) await block(i * 100);
  const { user, system } = process.cpuUsage(cpu);
  return { perSecond: (requests * 1_000) / (performance.now() - start), micros: (user + system) / requests };
}

if (mode === "requests")
  await withDevices(1, async ([url = ""]) => {
    const { hostname: host, port } = new URL(url);
    const { default: modbusSerial } = await import("modbus-serial");
    const library = new modbusSerial.default();
    await library.connectTCP(host, { port: Number(port) });
    library.setID(1);
    library.setTimeout(1_000);
    const runtime = testRuntime();
    const connect = async () =>
      streamExchange(
        await connectTcp({ host, port: Number(port), localAddress: undefined, timeoutMs: 1_000 }, signal),
        new MbapFraming({ anyUnit: false }),
        systemClock(),
      );
    await using link = await openModbusConnection(
      { name: "bench", units: new Set([1]), delayMs: 0, pauseAfterConnectMs: 0, connect },
      runtime,
      signal,
    );
    const ratios: number[] = [];
    const micros: { bare: number; ours: number }[] = [];
    // In turn, so that other load on the machine affects both.
    for (let round = 0; round < rounds; round++) {
      const bare = await speedOf((start) => library.readHoldingRegisters(start, 100));
      const ours = await speedOf((start) => link.read({ unit: 1, table: "hr", start, count: 100 }, 1_000, signal));
      ratios.push(ours.perSecond / bare.perSecond);
      micros.push({ bare: bare.micros, ours: ours.micros });
      console.log(
        `requests/s: library ${bare.perSecond.toFixed(0)}, link ${ours.perSecond.toFixed(0)}, ratio ${ratios.at(-1)?.toFixed(2)}; processor: library ${bare.micros.toFixed(0)} µs a request, link ${ours.micros.toFixed(0)} µs`,
      );
    }
    const [bare, ours] = [median(micros.map((each) => each.bare)), median(micros.map((each) => each.ours))];
    console.log(
      `median of ${rounds} rounds: ratio ${median(ratios).toFixed(2)}, library ${bare.toFixed(0)} µs, link ${ours.toFixed(0)} µs`,
    );
    library.close(() => {});
  });

if (mode === "devices")
  await withDevices(100, async (urls) => {
    const tags = Array.from({ length: 150 }, (_, i) => ({ at: `hr:${i * 2} f32`, every: 1_000 }));
    const sources = await Promise.all(urls.map((url) => openModbusSource({ url }, tags, testRuntime(), signal)));
    let readings = 0;
    const stop = new AbortController();
    const pulling = sources.map(async (source) => {
      for await (const delivery of source.deliveries(stop.signal)) readings += delivery.readings.length;
    });
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const shares: number[] = [];
    const memories: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const [before, start, cpu] = [readings, performance.now(), process.cpuUsage()];
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      const elapsed = performance.now() - start;
      const { user, system } = process.cpuUsage(cpu);
      shares.push(((user + system) / 1_000 / elapsed) * 100);
      memories.push(process.memoryUsage.rss() / 2 ** 20);
      const rate = Math.round(((readings - before) * 1_000) / elapsed);
      console.log(
        `${rate} readings/s of 100 devices: ${shares.at(-1)?.toFixed(1)} % of a core, ${memories.at(-1)?.toFixed(0)} MiB`,
      );
    }
    console.log(
      `median of ${rounds} rounds: ${median(shares).toFixed(1)} % of a core, ${median(memories).toFixed(0)} MiB`,
    );
    stop.abort();
    await Promise.all(pulling);
    for (const source of sources) await source[Symbol.asyncDispose]();
  });

if (mode === "gateway") {
  await using gateway = await modbusDevice();
  gateway.latencyMs = 3;
  for (let unit = 1; unit <= 100; unit++) gateway.unit(unit).silent = unit % 10 === 5;
  const tags = Array.from({ length: 100 }, (_, i) => ({ at: "hr:0", unit: i + 1, every: 1_000 }));
  await using source = await openModbusSource({ url: gateway.url }, tags, testRuntime(), signal);
  const roundMs = 30_000;
  const settled = performance.now() + 15_000;
  /** By round and tag: the times of the readings in milliseconds. */
  const times = Array.from({ length: rounds }, () => new Map<number, number[]>());
  for await (const { readings } of source.deliveries(signal)) {
    const round = Math.floor((performance.now() - settled) / roundMs);
    if (round >= rounds) break;
    const ofRound = times[round];
    for (const { tag, time, quality } of ofRound ? readings : [])
      if (quality === "good") ofRound?.set(tag, [...(ofRound.get(tag) ?? []), time / 1_000]);
  }
  const percentiles = times.map((ofRound) => {
    const spacings = [...ofRound.values()].flatMap((all) => all.slice(1).map((time, i) => time - (all[i] ?? 0)));
    const sorted = spacings.toSorted((a, b) => a - b);
    const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
    const longest = sorted.at(-1) ?? Number.NaN;
    console.log(`${ofRound.size} units alive: intervals p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, longest ${longest} ms`);
    return { p50: at(0.5), p95: at(0.95), longest };
  });
  const [p50, p95] = [median(percentiles.map((round) => round.p50)), median(percentiles.map((round) => round.p95))];
  console.log(`median of ${rounds} rounds: p50 ${p50} ms, p95 ${p95} ms`);
}
