// The first save of many signals does not delay messages and requests. It is measured in signals, independent of the
// machine's speed.
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { InputId, SignalId } from "../../../src/core/point.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { Pacer } from "../../../src/upload/client/pacer.ts";
import type { Call, CallOutcome } from "../../../src/upload/client/rpc-client.ts";
import { type Catalog, openCatalog } from "../../../src/upload/signals/catalog.ts";
import { SignalSync } from "../../../src/upload/signals/signal-sync.ts";
import { eventually } from "../../support/eventually.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const count = 10_000;
const id = "c".repeat(20) as SignalId; // the service's format
const options = serviceOptions.parse({
  url: "http://127.0.0.1:1",
  integration: "c8ktonqsahsmemfs7lv0",
  auth: { basic: { password: "pass:word" } },
});

test("the metadata of 10,000 new signals are sent in one request, and other requests run while it is built", async () => {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const pending = new Set(Array.from({ length: count }, (_, i) => `line${i % 10}.tag${i}` as InputId));
  let seen = 0;
  const catalog: Pick<Catalog, "pending" | "entry" | "markSaved" | "refused"> = {
    pending,
    refused: new Map(),
    entry(input) {
      seen++;
      return {
        input,
        signal: { engUnit: "degC", labels: { site: ["north"] } },
        hash: "h",
        saved: false,
        id: undefined,
      };
    },
    markSaved: (input) => void pending.delete(input),
  };
  const calls: Call[] = [];
  const call = async (given: Call): Promise<CallOutcome> => {
    calls.push(given);
    return {
      kind: "done",
      result: { signalsByInput: Object.fromEntries([...pending].map((input) => [input, { id }])) },
    };
  };
  const pacer = new Pacer(clock, 1_000);
  const parts = {
    options,
    catalog: catalog as Catalog,
    pacer,
    maxBytes: 8 * 2 ** 20,
    call,
    report: () => {},
    acceptedRequests: () => 0,
  };
  const stop = new AbortController();
  const running = new SignalSync(parts, runtime).run(stop.signal, stop.signal);
  let most = 0;
  for (let before = 0; calls.length === 0 && seen <= count; before = seen) {
    await setImmediate();
    most = Math.max(most, seen - before);
    if (seen === count) await clock.advance(10);
  }
  expect(most).toBeLessThanOrEqual(200);
  expect(calls).toHaveLength(1);
  // as it was sent
  const { params } = JSON.parse(Buffer.from(calls[0]?.body ?? []).toString()) as { params: Record<string, object> };
  expect(Object.keys(params["signalsByInput"] ?? params["inputs"] ?? {})).toHaveLength(count);
  stop.abort(new Error("the test is over"));
  await running;
});

test("points of a signal with invalid metadata in the catalog are sent all the same", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using catalog = await openCatalog(folder.file("signals.db"), runtime, new AbortController().signal);
  const input = "a" as InputId;
  catalog.describe(input, { name: "x".repeat(129), engUnit: "V" });
  const call = () => Promise.reject(new Error("no call is expected"));
  const pacer = new Pacer(clock, 1_000);
  const parts = { options, catalog, pacer, maxBytes: 2_000, call, report: () => {}, acceptedRequests: () => 0 };
  const sync = new SignalSync(parts, runtime);
  expect(sync.holds(input)).toBe(true);
  const stop = new AbortController();
  const running = sync.run(stop.signal, stop.signal);
  await eventually(async () => {
    await clock.advance(10);
    return !sync.holds(input);
  });
  expect([...catalog.refused]).toEqual([[input, "name must have 1 to 128 characters"]]);
  stop.abort(new Error("the test is over"));
  await running;
});

test("metadata that are invalid or fit into no request are refused, and the others are saved", async () => {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const [good, invalid, large] = ["good", "invalid", "large"] as [InputId, InputId, InputId]; // valid Input IDs
  const signals = new Map([
    [invalid, { name: "" }],
    [large, { description: "€".repeat(1_000) }],
    [good, {}],
  ]);
  const pending = new Set(signals.keys());
  const refused = new Map<InputId, string>();
  const catalog: Pick<Catalog, "pending" | "entry" | "markSaved" | "markRefused" | "refused"> = {
    pending,
    refused: new Map(),
    entry: (input) => ({ input, signal: signals.get(input) ?? {}, hash: "h", saved: false, id: undefined }),
    markSaved: (input) => void pending.delete(input),
    markRefused(input, _hash, reason) {
      pending.delete(input);
      refused.set(input, reason);
    },
  };
  const sent: string[] = [];
  const call = async ({ body }: Call): Promise<CallOutcome> => {
    sent.push(Buffer.from(body).toString());
    return { kind: "done", result: { signalsByInput: { [good]: { id } } } };
  };
  const pacer = new Pacer(clock, 1_000);
  const parts = {
    options,
    catalog: catalog as Catalog,
    pacer,
    maxBytes: 2_000,
    call,
    report: () => {},
    acceptedRequests: () => 0,
  };
  const stop = new AbortController();
  const running = new SignalSync(parts, runtime).run(stop.signal, stop.signal);
  await eventually(async () => {
    await clock.advance(10);
    return pending.size === 0;
  });
  expect([...refused]).toEqual([
    [invalid, expect.stringContaining("name")],
    [large, expect.stringMatching(/metadata of \d+ bytes are larger than a request may be/)],
  ]);
  expect(sent).toEqual([expect.stringContaining(`"${good}":`)]);
  stop.abort(new Error("the test is over"));
  await running;
});

test("behind 400 signals that the service refuses without naming them, the metadata of 40 others are saved within 80 minutes", async () => {
  using folder = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using catalog = await openCatalog(folder.file("signals.db"), runtime, new AbortController().signal);
  for (let i = 0; i < 440; i++) catalog.describe(`${i < 400 ? "bad" : "good"}${i}` as InputId, { engUnit: "V" });
  const call = async ({ body }: Call): Promise<CallOutcome> => {
    const inputs = [
      ...Buffer.from(body)
        .toString()
        .matchAll(/"((?:good|bad)\d+)":\{/g),
    ].map(([, input = ""]) => input);
    if (inputs.some((input) => input.startsWith("bad")))
      return { kind: "refused", code: 400, reason: "HTTP 400", faults: [] };
    return { kind: "done", result: { signalsByInput: Object.fromEntries(inputs.map((input) => [input, { id }])) } };
  };
  const pacer = new Pacer(clock, 1);
  const parts = { options, catalog, pacer, maxBytes: 2 ** 20, call, report: () => {}, acceptedRequests: () => 0 };
  const stop = new AbortController();
  const running = new SignalSync(parts, runtime).run(stop.signal, stop.signal);
  for (let minutes = 0; minutes < 80 && catalog.savedCount < 40; minutes++) await clock.advance(60_000);
  expect(catalog.savedCount).toBe(40);
  stop.abort(new Error("the test is over"));
  await running;
});
