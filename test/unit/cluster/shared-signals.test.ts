// The agent that delivers knows the metadata of all agents. Where several agents describe a signal, one description
// applies.
import { expect, test } from "vitest";
import { removeMember } from "../../../src/cluster/members/membership.ts";
import { PublishedSignals } from "../../../src/cluster/signals/published-signals.ts";
import { SharedSignals } from "../../../src/cluster/signals/shared-signals.ts";
import { AgentError } from "../../../src/core/errors.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { PartialSignalMetadata, SignalCatalog } from "../../../src/core/signal.ts";
import { memoryBucket } from "../../support/memory-bucket.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

type Units = Readonly<Record<string, string>>;

const clock = new ManualClock();

class UnitCatalog implements SignalCatalog {
  readonly #units = new Map<string, string>();

  get units(): Units {
    return Object.fromEntries(this.#units);
  }

  describe(input: InputId, { engUnit = "" }: PartialSignalMetadata): void {
    this.#units.set(input, engUnit);
  }
}

function cluster() {
  const state = memoryBucket();
  const nodes = new Map<string, { boot: number; signals: PublishedSignals; configured: (input: string) => boolean }>();
  const start = (node: string, configured: (input: string) => boolean = () => true) => {
    const before = nodes.get(node);
    const options = { state, node, catalog: new UnitCatalog(), configured };
    const signals = new PublishedSignals(options, testRuntime({ clock }));
    nodes.set(node, { boot: (before?.boot ?? 0) + 1, signals, configured });
    return {
      signals,
      async describe(units: Units) {
        for (const [input, engUnit] of Object.entries(units)) signals.describe(input as InputId, { engUnit });
        await signals.publish();
      },
    };
  };
  const members = {
    get members() {
      return Array.from(nodes, ([node, { boot, signals }]) => ({
        node,
        boot: String(boot),
        version: "1",
        offers: [],
        prefers: [],
        reads: [],
        aliveMs: undefined,
        ...(signals.mark !== undefined && { signals: signals.mark }),
      }));
    },
  };
  return {
    state,
    start,
    leave: (node: string) => void nodes.delete(node),
    holder: () => {
      const catalog = new UnitCatalog();
      return { catalog, shared: new SharedSignals({ state, members, catalog }) };
    },
  };
}

test("the metadata of all agents is known, also of those that are off, and changes follow", async () => {
  const { start, holder } = cluster();
  await start("gw.1").describe({ a: "°C" });
  const second = start("gw.2");
  await second.describe({ b: "bar" });
  const { catalog, shared } = holder();
  await shared.open();
  expect(catalog.units).toEqual({ a: "°C", b: "bar" });
  await second.describe({ b: "Pa", c: "V" });
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "°C", b: "Pa", c: "V" });
});

test("of two descriptions of one signal the last change applies, for each agent that delivers", async () => {
  const { start, holder } = cluster();
  const [first, second] = [start("gw1"), start("gw2")];
  await first.describe({ a: "°C" });
  await second.describe({ a: "K" });
  const { catalog, shared } = holder();
  await shared.open();
  expect(catalog.units).toEqual({ a: "K" });
  // A restart publishes the same description again, which is not a change.
  const again = start("gw1");
  await again.describe({ a: "°C" });
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "K" });
  const later = holder();
  await later.shared.open();
  expect(later.catalog.units).toEqual({ a: "K" });
  await again.describe({ a: "°F" });
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "°F" });
});

test("many changes stay few entries, and keep which description was the last one", async () => {
  const { state, start, holder } = cluster();
  const keys = new Set<string>();
  const create = state.create.bind(state);
  state.create = (key, value) => create(keys.add(key) && key, value);
  const first = start("gw1");
  await first.describe({ old: "m", a: "0" });
  await start("gw2").describe({ old: "ft" });
  for (let i = 1; i <= 100; i++) await first.describe({ a: String(i) });
  expect((await state.list("signals.gw1.")).length).toBeLessThan(20);
  // The servers keep a mark for each key that was deleted, and a list reads it.
  expect(keys.size).toBeLessThan(40);
  const { catalog, shared } = holder();
  await shared.open();
  expect(catalog.units).toEqual({ a: "100", old: "ft" });
  const again = start("gw1");
  await again.describe({ a: "100", old: "m" });
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "100", old: "ft" });
});

test("a signal that left a configuration is reported, unless another agent has it: then its description applies", async () => {
  const { start, leave, holder, state } = cluster();
  const has = new Set(["a", "b"]);
  await start("gw1").describe({ b: "l" });
  const second = start("gw2", (input) => has.has(input));
  await second.describe({ a: "m", b: "m³" });
  const { catalog, shared } = holder();
  await shared.open();
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "m", b: "m³" });
  expect(["a", "b", "c"].map((input) => shared.has(input))).toEqual([true, true, false]);
  has.clear();
  second.signals.reconfigured();
  await second.signals.publish();
  await shared.refresh();
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "m", b: "l" });
  expect(["a", "b", "c"].map((input) => shared.has(input))).toEqual([false, true, false]);
  leave("gw1");
  await removeMember(state, "gw1");
  const later = holder();
  await later.shared.open();
  expect(later.shared.has("b")).toBe(false);
});

test("while an agent has not said what it describes, no signal counts as unconfigured", async () => {
  const { start, holder } = cluster();
  await start("gw1").describe({ a: "m" });
  const second = start("gw2");
  const { shared } = holder();
  await shared.open();
  expect(shared.has("c")).toBe(true);
  await second.signals.publish();
  await shared.refresh();
  expect(shared.has("c")).toBe(false);
});

test("what the servers lose is published again, and changes of then on apply", async () => {
  const { state, start, holder } = cluster();
  const first = start("gw1");
  await first.describe({ a: "m", b: "s" });
  for (const unit of ["kg", "g"]) await first.describe({ b: unit });
  const { catalog, shared } = holder();
  await shared.open();
  state.wipe();
  await clock.advance(61_000);
  await first.signals.publish();
  await first.describe({ a: "km" });
  await shared.refresh();
  expect(catalog.units).toEqual({ a: "km", b: "g" });
  const later = holder();
  await later.shared.open();
  expect(later.catalog.units).toEqual({ a: "km", b: "g" });
});

test("metadata described while the servers are away is published when they are back, once", async () => {
  const { state, start, holder } = cluster();
  const first = start("gw1");
  state.before = () => {
    throw new AgentError("CLUSTER_UNREACHABLE", "no answer");
  };
  await expect(first.describe({ a: "m" })).rejects.toThrow("no answer");
  expect(first.signals.mark).toBeUndefined();
  state.before = () => {};
  // The answer to this call is lost.
  state.after = (call) => {
    if (call !== "create") return;
    state.after = () => {};
    throw new AgentError("CLUSTER_UNREACHABLE", "no answer");
  };
  await expect(first.signals.publish()).rejects.toThrow("no answer");
  await first.signals.publish();
  const { catalog, shared } = holder();
  await shared.open();
  expect(catalog.units).toEqual({ a: "m" });
});

test("many signals with long labels fit into messages of the servers", async () => {
  const { state, start, holder } = cluster();
  const first = start("gw1");
  for (let i = 0; i < 5_000; i++)
    first.signals.describe(`in/${i}` as InputId, {
      engUnit: `u${i}`,
      // Text that does not compress well.
      labels: {
        where: [Array.from({ length: 40 }, (_, j) => ((i * 7_919 + j * 104_729) % 999_983).toString(36)).join("-")],
      },
    });
  await first.signals.publish();
  const parts = await state.list("signals.");
  expect(Math.max(...parts.map(({ value }) => value.length))).toBeLessThanOrEqual(512 * 1_024);
  const { catalog, shared } = holder();
  await shared.open();
  expect(Object.keys(catalog.units).length).toBe(5_000);
});
