// Reads the service's signals in each dialect and compares them with the expected ones.
import { expect, test } from "vitest";
import { isAgentError } from "../../src/core/errors.ts";
import type { InputId } from "../../src/core/point.ts";
import { Secret } from "../../src/core/secret.ts";
import type { PartialSignalMetadata } from "../../src/core/signal.ts";
import { changesOf, signalView } from "../../src/upload/signals/attribute-map.ts";
import { type OurSignals, type ReviewedSignal, reviewSignals } from "../../src/upload/signals/stored-signals.ts";
import { methodCaller } from "../support/method-caller.ts";
import { ScriptedService, says } from "../support/scripted-service.ts";
import { integration, password, testService } from "../support/service.ts";

const { signal } = new AbortController();

function ours(signals: Record<string, PartialSignalMetadata>, others = ""): OurSignals {
  return {
    inputs: () => Object.keys(signals) as InputId[],
    metadata: (input) => signals[input],
    configured: (input) => input in signals || (others !== "" && input.startsWith(others)),
  };
}

async function review(url: string, signals: OurSignals, service: Record<string, unknown> = {}) {
  await using client = await methodCaller(url, service);
  const reviewed: ReviewedSignal[] = [];
  const each = async (page: readonly ReviewedSignal[]) => void reviewed.push(...page);
  return { ...(await reviewSignals(client.caller, signals, { items: true, each }, signal)), reviewed };
}

const asSaved = {
  name: "Boiler",
  engUnit: "°C",
  type: "enum",
  enumValues: { "0": "off", "1": "on" },
  labels: { hall: ["1", "2"] },
  gapDetection: "P40D",
  annotations: { "acme/line": "7" },
} as const;

test.for(["1.0", "1.1beta1", "1.1"] as const)(
  "what was changed, lost and never ours is found, at version %s",
  async (apiVersion) => {
    await using service = await testService();
    const inputs = { "boiler.temp": asSaved, "pump.speed": { engUnit: "rpm" }, "old.tag": {}, "hall.7": {} };
    await service.call("integration.saveSignals", { integration, inputs });
    const signals = {
      "boiler.temp": asSaved,
      "pump.speed": { engUnit: "1/min", labels: { hall: ["3"] } },
      "gone.tag": { engUnit: "bar" },
    };
    const { reviewed, ...found } = await review(service.url, ours(signals, "hall."), { apiVersion });
    expect(found).toEqual({ missing: ["gone.tag"], unconfigured: ["old.tag"], nameless: 0 });
    expect(reviewed.map(({ input, changes }) => [input, changes])).toEqual([
      ["boiler.temp", []],
      [
        "pump.speed",
        [
          { attribute: "engUnit", ours: "1/min", theirs: "rpm" },
          { attribute: "labels.hall", ours: ["3"], theirs: undefined },
        ],
      ],
    ]);
  },
);

test.for(["1.1beta1", "1.1"] as const)(
  "more signals than a page holds are all read with their items, at version %s",
  async (apiVersion) => {
    await using service = await testService();
    const names = Array.from({ length: 1_000 }, (_, i) => `tag${i}`);
    const inputs = Object.fromEntries(names.map((name) => [name, {}]));
    const saved = await service.call("integration.saveSignals", { integration, inputs });
    const id: string = saved.body?.result?.["signalsByInput"].tag7.id;
    const item = { name: "Seven", type: "numeric", sourceType: "measurement", labels: { hall: ["7"] }, visible: true };
    await service.call("admin.publishSignals", { integration, itemsBySignal: { [id]: item } });
    const { reviewed } = await review(service.url, ours(inputs), { apiVersion });
    expect(new Set(reviewed.map(({ input }) => input))).toEqual(new Set(names));
    const items = reviewed.flatMap(({ stored }) => (stored.item ? [stored.item] : []));
    expect(items.map(({ attributes: { name, labels }, visible }) => ({ name, labels, visible }))).toEqual([
      { name: "Seven", labels: { hall: ["7"] }, visible: apiVersion === "1.1" ? true : undefined },
    ]);
  },
);

test("reading without the grant is refused", async () => {
  const integrations = [{ id: integration, password: new Secret(password), grants: [] }];
  await using service = await testService({ integrations });
  const refused = await review(service.url, ours({})).catch((error: unknown) => error);
  expect(isAgentError(refused, "SERVICE_REFUSED")).toBe(true);
});

test("a service that hides Input IDs does not make signals look lost", async () => {
  await using service = await ScriptedService.open();
  const meta = { contentHash: "", createdAt: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:00Z" };
  const hidden = { ...signalView("a" as InputId, {}), meta, item: null };
  service.otherwise = says(() => ({ result: { signals: { c8ktonqsahsmemfs7lv0: hidden } } }));
  const { reviewed, ...found } = await review(service.url, ours({ a: {} }));
  expect(found).toEqual({ missing: [], unconfigured: [], nameless: 1 });
  expect(reviewed).toEqual([]);
});

test("annotations added by others are not a change, changed own ones are; durations are compared", () => {
  const own = signalView("a" as InputId, { annotations: { mine: "1" }, gapDetection: "P1D" });
  const changes = (annotations: Record<string, string>, gapDetection = "PT24H") =>
    own && changesOf(own, { annotations, gapDetection }).map(({ attribute }) => attribute);
  expect(changes({ mine: "1", yours: "2" })).toEqual([]);
  expect(changes({ mine: "2" })).toEqual(["annotations.mine"]);
  expect(changes({})).toEqual(["annotations.mine"]);
  expect(changes({ mine: "1" }, "PT23H")).toEqual(["gapDetection"]);
});
