// A metadata query of one row, a saveSignals of one signal and an insert of one point, sent to an idle service and to
// one that stores full inserts without a pause. Memory is that of the sources; `memory.bench.ts` measures that of a
// release.
// Run: node test/bench/service/readers.bench.ts [folder on the disk to measure] [seconds]

import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { integration } from "../../support/service.ts";
import { type ServiceClient, serviceClient } from "../../support/service-client.ts";
import { serviceProcess } from "../../support/service-process.ts";
import { fullInsert, signals } from "./full-insert.ts";

// A separate thread sends the inserts, so that building them does not delay the queries.
if (isMainThread) await measure(process.argv[2] ?? "/var/tmp", Number(process.argv[3] ?? 20));
else await insertWithoutPause(workerData as { readonly url: string; readonly ms: number });

async function measure(parent: string, seconds: number): Promise<void> {
  const folder = mkdtempSync(join(parent, "tagferry-bench-"));
  try {
    await using service = await serviceProcess(join(folder, "data"));
    using client = serviceClient(service.url);
    await client.post(fullInsert(0, 1));
    // After these answers both reading threads have started.
    for (let n = 0; n < 20; n++) await select(client);
    const idle = await ask(client, new Promise((resolve) => setTimeout(resolve, seconds * 250)));
    const idleSaves = await ask(client, new Promise((resolve) => setTimeout(resolve, seconds * 250)), save);
    const idlePoints = await ask(client, new Promise((resolve) => setTimeout(resolve, seconds * 250)), insertPoint);
    await service.usage();
    const inserting = new Promise<readonly number[]>((resolve, reject) =>
      new Worker(new URL(import.meta.url), { workerData: { url: service.url, ms: seconds * 1_000 } })
        .once("message", resolve)
        .once("error", reject),
    );
    using saver = serviceClient(service.url);
    using inserter = serviceClient(service.url);
    const [busy, busySaves, busyPoints] = await Promise.all([
      ask(client, inserting),
      ask(saver, inserting, save),
      ask(inserter, inserting, insertPoint),
    ]);
    const inserts = await inserting;
    const { cpuMs, peakRssMiB, longestBlockMs } = await service.usage();
    console.log(`inserts over ${signals} signals: ${textOf(inserts)}`);
    console.log(
      `CPU ms an insert ${(cpuMs / inserts.length).toFixed(0)}, peak RSS ${peakRssMiB.toFixed(0)} MiB, event loop blocked ${longestBlockMs.toFixed(0)} ms`,
    );
    console.log(`metadata query, idle: ${textOf(idle)}`);
    console.log(`metadata query during the inserts: ${textOf(busy)}`);
    console.log(`saveSignals, idle: ${textOf(idleSaves)}`);
    console.log(`saveSignals during the inserts: ${textOf(busySaves)}`);
    console.log(`insert of a point, idle: ${textOf(idlePoints)}`);
    console.log(`insert of a point during the inserts: ${textOf(busyPoints)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Inserts without a pause. Posts the milliseconds that each insert took. */
async function insertWithoutPause({ url, ms }: { readonly url: string; readonly ms: number }): Promise<void> {
  using client = serviceClient(url);
  const took: number[] = [];
  const end = performance.now() + ms;
  for (let n = 0; performance.now() < end; n++) {
    const body = fullInsert(n, 300);
    const began = performance.now();
    await client.post(body);
    took.push(performance.now() - began);
  }
  parentPort?.postMessage(took);
}

/**
 * Queries the metadata of one signal, or runs `call`, every 50 ms until `others` have ended. Returns milliseconds of
 * each.
 */
async function ask(
  client: ServiceClient,
  others: Promise<unknown>,
  call: (client: ServiceClient) => Promise<object> = select,
): Promise<readonly number[]> {
  const took: number[] = [];
  let ended = false;
  void others.then(() => (ended = true));
  while (!ended) {
    const began = performance.now();
    await call(client);
    took.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return took;
}

function select(client: ServiceClient): Promise<object> {
  return client.call("admin.selectSignals", { integration, signals: { include: true, limit: 1 } });
}

function save(client: ServiceClient): Promise<object> {
  return client.call("integration.saveSignals", { integration, inputs: { small: { name: String(Math.random()) } } });
}

function insertPoint(client: ServiceClient): Promise<object> {
  const data = { times: [new Date().toISOString()], series: { small: [Math.random()] } };
  return client.call("integration.insert", { integration, data });
}

function textOf(took: readonly number[]): string {
  const figures = (
    [
      ["p50", 0.5],
      ["p90", 0.9],
      ["p99", 0.99],
      ["longest", 1],
    ] as const
  ).map(([name, share]) => `${name} ${at(took, share)} ms`);
  return `${took.length} times, ${figures.join(", ")}`;
}

function at(values: readonly number[], share: number): string {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN).toFixed(1);
}
