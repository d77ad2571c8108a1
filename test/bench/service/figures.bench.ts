// The three figures of the local service: a full dense insert, a rollup over 400 days of minutes, and selects during
// inserts.
// Run: node test/bench/service/figures.bench.ts [folder on the disk to measure]

import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import { integration } from "../../support/service.ts";
import type { ServiceClient } from "../../support/service-client.ts";
import { serviceClient } from "../../support/service-client.ts";
import type { ServiceProcess } from "../../support/service-process.ts";
import { serviceProcess } from "../../support/service-process.ts";

const folder = mkdtempSync(join(process.argv[2] ?? "/var/tmp", "tagferry-bench-"));
const view = { name: "item", type: "numeric", sourceType: "measurement" };
const start = Date.UTC(2026, 0, 1);

console.log(`${cpus().length} × ${cpus()[0]?.model}, ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}`);
try {
  await dense();
  await rollup();
  await mixed();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** 1,000 series × as many shared times as fit into 8 MiB, values of 3 to 4 digits with a decimal. */
async function dense(): Promise<void> {
  await using service = await serviceProcess(join(folder, "dense"));
  using client = serviceClient(service.url);
  await service.usage();
  let points = 0;
  for (let n = 0; n < 6; n++) {
    const body = denseBody(n);
    points += body.points;
    const began = performance.now();
    await client.post(body.bytes);
    const ms = performance.now() - began;
    const { peakRssMiB, longestBlockMs, cpuMs } = await service.usage();
    print("insert, dense", {
      MiB: body.bytes.length / 2 ** 20,
      points: body.points,
      "ms to the durable answer": ms,
      "peak RSS MiB": peakRssMiB,
      "event loop blocked ms": longestBlockMs,
      "CPU ms": cpuMs,
    });
  }
  print("on disk", { "bytes a point, with log": bytesOf(join(folder, "dense")) / points });
}

/** Exactly 8 MiB: as many rows as fit, then white space. */
function denseBody(n: number): { bytes: Buffer; points: number } {
  const series = 1_000;
  const limit = 8 * 2 ** 20;
  const rows = 1_769;
  const times = Array.from({ length: rows }, (_, i) => new Date(start + (n * rows + i) * 1_000).toISOString());
  const values = Array.from({ length: series }, (_, s) =>
    Array.from({ length: rows }, (_, i) => ((i * 37 + s * 101) % 999) / 10),
  );
  const named = Object.fromEntries(
    values.map((column, s) => [`line1.machine2.t${String(s).padStart(3, "0")}`, column]),
  );
  const request = {
    jsonrpc: "2.0",
    id: 1,
    method: "integration.insert",
    params: { integration, data: { times, series: named } },
  };
  const text = JSON.stringify(request);
  if (text.length > limit) throw new Error(`${text.length} bytes are more than 8 MiB`);
  return { bytes: Buffer.from(text.padEnd(limit)), points: series * rows };
}

/** One item with a point a minute for 400 days. */
async function rollup(): Promise<void> {
  await using service = await serviceProcess(join(folder, "rollup"));
  using client = serviceClient(service.url);
  const total = 400 * 1_440;
  for (let at = 0; at < total; at += 48_000) {
    const times = Array.from({ length: 48_000 }, (_, i) => new Date(start - (total - at - i) * 60_000).toISOString());
    const a = times.map((_, i) => Math.sin((at + i) / 700) * 50);
    await client.call("integration.insert", { integration, data: { times, series: { a } } });
  }
  await publishAll(client);
  const window = { notBefore: new Date(start - total * 60_000).toISOString(), before: new Date(start).toISOString() };
  for (const width of ["PT1H", "P1D", "window", "PT1H", "P1D", "window"]) {
    const began = performance.now();
    const { data } = await client.call("platform.selectItems", { data: { include: true, ...window, rollup: width } });
    const { times } = data as { times: string[] };
    print(`rollup ${width} of ${total} points`, { ms: performance.now() - began, buckets: times.length });
  }
}

/** 10 selects a second for 50 items × 1,000 points, during inserts of 1,000 points. */
async function mixed(): Promise<void> {
  await using service = await serviceProcess(join(folder, "mixed"));
  using client = serviceClient(service.url);
  const names = Array.from({ length: 50 }, (_, i) => `s${i}`);
  const times = Array.from({ length: 1_000 }, (_, i) => new Date(start + i * 1_000).toISOString());
  await client.call("integration.insert", {
    integration,
    data: {
      times,
      series: Object.fromEntries(names.map((name, s) => [name, times.map((_, i) => ((i * 37 + s) % 999) / 10)])),
    },
  });
  await publishAll(client);
  const window = { notBefore: times[0], before: new Date(start + 1_000_000).toISOString() };
  const took: number[] = [];
  const end = performance.now() + 20_000;
  const inserting = insertUntil(service, end);
  for (let next = performance.now(); next < end; next += 100) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    const began = performance.now();
    await client.call("platform.selectItems", { items: { limit: 50 }, data: { include: true, ...window } });
    took.push(performance.now() - began);
  }
  const inserts = await inserting;
  took.sort((a, b) => a - b);
  const at = (share: number) => took[Math.floor(took.length * share)] ?? Number.NaN;
  print("select of 50 × 1,000 points during inserts", {
    selects: took.length,
    inserts: inserts,
    "p50 ms": at(0.5),
    "p99 ms": at(0.99),
  });
}

/** Inserts 1,000 series with one point each, one request after the other. */
async function insertUntil(service: ServiceProcess, end: number): Promise<number> {
  using client = serviceClient(service.url);
  let inserts = 0;
  for (; performance.now() < end; inserts++) {
    const series = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`other${i}`, [inserts]]));
    const times = [new Date(start + inserts * 100).toISOString()];
    await client.call("integration.insert", { integration, data: { times, series } });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return inserts;
}

async function publishAll(client: ServiceClient): Promise<void> {
  const { signals } = await client.call("admin.selectSignals", {
    integration,
    signals: { include: true, limit: 1_000 },
  });
  const itemsBySignal = Object.fromEntries(Object.keys(signals ?? {}).map((id) => [id, view]));
  await client.call("admin.publishSignals", { integration, itemsBySignal });
}

function bytesOf(path: string): number {
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}

function print(what: string, figures: Readonly<Record<string, number>>): void {
  const text = Object.entries(figures).map(
    ([name, value]) => `${name} ${Number.isInteger(value) ? value : value.toFixed(value < 20 ? 2 : 0)}`,
  );
  console.log(`${what}: ${text.join(", ")}`);
}
