import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { RpcInput } from "../../../src/service/method/dispatch.ts";
import { openStoreThreads, type StoreThreads } from "../../../src/service/worker/store-threads.ts";
import { startWorkerThread } from "../../../src/service/worker/worker-thread.ts";
import { integration } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const waits = new AbortController().signal;
const start = Date.UTC(2026, 0, 1);

function inputOf(method: string, params: object): RpcInput {
  return {
    body: Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })),
    method,
    id: "1",
    caller: { integration, grants: ["admin", "platform"] },
    version: "1.1beta1",
    namespace: "platform",
    now: start * 1_000,
    trace: "0",
    refusedInputs: [],
  };
}

async function resultOf(threads: StoreThreads, method: string, params: object): Promise<Record<string, object>> {
  const { body } = await threads.call(inputOf(method, params), waits);
  return JSON.parse(Buffer.from(body ?? []).toString()).result;
}

const times = Array.from({ length: 20_000 }, (_, i) => new Date(start + i * 1_000).toISOString());

/** Stores points of items. */
async function store(threads: StoreThreads, items: number): Promise<void> {
  const series = Object.fromEntries(Array.from({ length: items }, (_, s) => [`s${s}`, times.map((_, i) => i)]));
  const stored = await resultOf(threads, "integration.insert", { integration, data: { times, series } });
  const signals = Object.values(stored["signalsByInput"] ?? {}).map((signal: { id: string }) => signal.id);
  const view = { name: "s", type: "enum", sourceType: "measurement" };
  const itemsBySignal = Object.fromEntries(signals.map((id) => [id, view]));
  await resultOf(threads, "admin.publishSignals", { integration, itemsBySignal });
}

/** A query that takes seconds when there are twenty items. */
function longQuery(): RpcInput {
  const groups = Array.from({ length: 100 }, (_, n) => {
    const aggregations = { timeAggregation: "state-seconds", state: 0, groupAggregation: "sum" };
    return { alias: `g${n}`, query: {}, ...aggregations };
  });
  const [$gte, $lt] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"];
  const input = inputOf("platform.evaluate", { groups, data: { filter: { times: { $gte, $lt } }, rollup: "window" } });
  return { ...input, version: "1.2" };
}

const shortQuery = () => inputOf("platform.selectItems", { items: { include: true } });

test("a query does not wait for a write that was sent before it", async () => {
  using folder = temporaryFolder();
  await using threads = await openStoreThreads(folder.path);
  // Afterwards the reading thread is open.
  await threads.call(shortQuery(), waits);
  // One thread answers in the order of the calls. Larger writes compensate for delays of the reading thread by load.
  let overtaken = false;
  for (let signals = 1_000; signals <= 16_000 && !overtaken; signals *= 2) {
    const inputs = Object.fromEntries(Array.from({ length: signals }, (_, n) => [`${signals}-${n}`, {}]));
    let written = false;
    const write = threads
      .call(inputOf("integration.saveSignals", { integration, inputs }), waits)
      .then(() => (written = true));
    await threads.call(shortQuery(), waits);
    overtaken = !written;
    await write;
  }
  expect(overtaken).toBe(true);
});

test("short queries do not wait for a long one, which ends when it is aborted", async () => {
  using folder = temporaryFolder();
  await using threads = await openStoreThreads(folder.path);
  await store(threads, 20);
  // Afterwards both threads are open.
  await Promise.all([threads.call(shortQuery(), waits), threads.call(shortQuery(), waits)]);
  const abandoned = new AbortController();
  const long = threads.call(longQuery(), abandoned.signal);
  await Promise.all(Array.from({ length: 6 }, () => threads.call(shortQuery(), waits)));
  abandoned.abort();
  expect((await long).failure).toMatch("the query was abandoned");
});

test("a query aborted before its turn is not run, and a running one stops reading", async () => {
  using folder = temporaryFolder();
  await using threads = await openStoreThreads(folder.path);
  await store(threads, 1);
  await expect(threads.call(longQuery(), AbortSignal.abort(new Error("gone")))).rejects.toThrow("gone");
  await using reader = startWorkerThread({ data: folder.path, reads: true });
  const { failure } = await reader.call(longQuery(), AbortSignal.abort());
  expect(failure).toMatch("the query was abandoned");
  expect(await reader.call(longQuery())).toMatchObject({ failure: undefined });
});

test("queued queries are answered before the threads end", async () => {
  using folder = temporaryFolder();
  const threads = await openStoreThreads(folder.path);
  const ask = (length: number) => Array.from({ length }, () => threads.call(shortQuery(), waits));
  // Afterwards both threads are open.
  await Promise.all(ask(2));
  const calls = ask(12);
  await threads[Symbol.asyncDispose]();
  for (const { failure } of await Promise.all(calls)) expect(failure).toBe(undefined);
});

test("a write completes when its client no longer waits", async () => {
  using folder = temporaryFolder();
  await using threads = await openStoreThreads(folder.path);
  const save = inputOf("integration.saveSignals", { integration, inputs: { a: {} } });
  await threads.call(save, AbortSignal.abort());
  const found = await resultOf(threads, "admin.selectSignals", { integration, signals: { include: true } });
  expect(Object.keys(found["signals"] ?? {})).toHaveLength(1);
});

test("the write-ahead log is truncated although queries overlap without a pause", async () => {
  using folder = temporaryFolder();
  await using threads = await openStoreThreads(folder.path, 2 ** 20);
  await store(threads, 20);
  const short = times.slice(0, 1_000);
  const series = Object.fromEntries(Array.from({ length: 20 }, (_, s) => [`s${s}`, short.map(() => s / 7)]));
  const data = { times: short, series };
  const running = Array.from({ length: 3 }, () => beginLong(threads));
  const log = () => statSync(join(folder.path, "service.sqlite-wal")).size;
  let before = 0;
  let rounds = 0;
  for (; rounds < 30 && log() >= before; rounds++) {
    before = log();
    await resultOf(threads, "integration.insert", { integration, data });
    // Another query runs meanwhile, until new queries have to wait.
    running.push(beginLong(threads));
    await running.shift()?.end();
  }
  expect(log()).toBeLessThan(before);
  await Promise.all(running.map(({ end }) => end()));
});

function beginLong(threads: StoreThreads) {
  const abandoned = new AbortController();
  const ended = Promise.allSettled([threads.call(longQuery(), abandoned.signal)]);
  const end = () => {
    abandoned.abort();
    return ended;
  };
  return { end };
}
