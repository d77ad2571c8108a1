// The first save of many signals does not delay messages and requests. It is measured in signals, independent of the
// machine's speed.
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import type { InputId, SignalId } from "../../../src/core/point.ts";
import { serviceOptions } from "../../../src/upload/client/options.ts";
import { Pacer } from "../../../src/upload/client/pacer.ts";
import type { Call, CallOutcome } from "../../../src/upload/client/rpc-client.ts";
import type { Catalog } from "../../../src/upload/signals/catalog.ts";
import { SignalSync } from "../../../src/upload/signals/signal-sync.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const count = 10_000;
const id = "c".repeat(20) as SignalId; // the service's format

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
  const options = serviceOptions.parse({
    url: "http://127.0.0.1:1",
    integration: "c8ktonqsahsmemfs7lv0",
    auth: { basic: { password: "pass:word" } },
  });
  const pacer = new Pacer(clock, 1_000);
  const parts = { options, catalog: catalog as Catalog, pacer, maxBytes: 8 * 2 ** 20, call, report: () => {} };
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
