// What is published of a signal when a user may have edited the item.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import type { PartialSignalMetadata } from "../../../src/core/signal.ts";
import { qualityRule, unmetRules } from "../../../src/upload/client/options.ts";
import { flatten, signalView, unflatten } from "../../../src/upload/signals/attribute-map.ts";
import { itemView, planItem } from "../../../src/upload/signals/item-publisher.ts";
import type { StoredItem } from "../../../src/upload/signals/stored-signals.ts";
import { runs } from "../../support/property.ts";

function wanted(signal: PartialSignalMetadata, visible = false) {
  const view = signalView("a" as InputId, signal);
  if (!view) throw new Error("no such signal");
  return itemView(view, "a", visible);
}

/** The item after it was published like this and then edited like that. */
function stored(signal: PartialSignalMetadata, edits: object = {}, visible?: boolean): StoredItem {
  return { id: "i", attributes: { ...wanted(signal), ...edits }, visible };
}

const before = { engUnit: "°C", description: "old", labels: { hall: ["1"] } };

test("an attribute as last published follows its signal", () => {
  const base = flatten(wanted(before));
  const after = { ...before, engUnit: "K", labels: { hall: ["2"] } };
  const plan = planItem(wanted(after), base, stored(before), "update");
  expect(plan).toMatchObject({ action: "update", edited: [], view: { engUnit: "K", labels: { hall: ["2"] } } });
  expect(planItem(wanted(before), base, stored(before), "update").action).toBe("keep");
  expect(planItem(wanted(after), base, stored(before), "createOnly").action).toBe("keep");
});

test("an attribute edited by a person stays, and the others follow the signal", () => {
  const base = flatten(wanted(before));
  const edits = { description: "mine", labels: { hall: ["1"], floor: ["3"] } };
  const after = { ...before, description: "new", engUnit: "K" };
  const plan = planItem(wanted(after), base, stored(before, edits), "update");
  expect(plan).toMatchObject({
    action: "update",
    view: { description: "mine", engUnit: "K", labels: { hall: ["1"], floor: ["3"] } },
    edited: [
      { attribute: "description", ours: "new", theirs: "mine" },
      { attribute: "labels.floor", ours: undefined, theirs: ["3"] },
    ],
  });
  // The next plan knows both the published and the withheld attributes.
  const next = planItem(wanted(after), "base" in plan ? plan.base : undefined, stored(after, edits), "update");
  expect(next).toMatchObject({ action: "keep", edited: [{ attribute: "description" }, { attribute: "labels.floor" }] });
});

test("a label removed by a person is not added again", () => {
  const plan = planItem(wanted(before), flatten(wanted(before)), stored(before, { labels: {} }), "update");
  expect(plan).toMatchObject({ action: "keep", edited: [{ attribute: "labels.hall", theirs: undefined }] });
});

test("a differing item that the agent never published is not changed", () => {
  const plan = planItem(wanted({ ...before, engUnit: "K" }), undefined, stored(before), "update");
  expect(plan).toMatchObject({ action: "keep", edited: [{ attribute: "engUnit", ours: "K", theirs: "°C" }] });
  // Once the item equals the configuration, later changes are published.
  const same = planItem(wanted(before), undefined, stored(before), "update");
  expect(
    planItem(wanted({ ...before, engUnit: "K" }), "base" in same ? same.base : undefined, stored(before), "update"),
  ).toMatchObject({ action: "update", view: { engUnit: "K" } });
});

test("an item is made visible, and one hidden by a person stays hidden", () => {
  const base = flatten(wanted(before, true));
  expect(planItem(wanted(before, true), undefined, undefined, "update")).toMatchObject({ view: { visible: true } });
  const hidden = planItem(wanted({ ...before, engUnit: "K" }, true), base, stored(before, {}, false), "update");
  expect(hidden).toMatchObject({ view: { visible: false, engUnit: "K" }, edited: [{ attribute: "visible" }] });
});

const metadata = fc.record(
  {
    name: fc.constantFrom("a", "b"),
    engUnit: fc.constantFrom("", "K", "°C"),
    description: fc.constantFrom("", "x", "y"),
    labels: fc.dictionary(fc.constantFrom("hall", "floor"), fc.constantFrom(["1"], ["2"]), { maxKeys: 2 }),
    gapDetection: fc.constantFrom(null, "PT1H", "PT60M", "P1D"),
  },
  { requiredKeys: [] },
);

test("an attribute that differs from the last published value is never overwritten", () => {
  fc.assert(
    fc.property(metadata, metadata, metadata, (published, now, edited) => {
      const base = flatten(wanted(published));
      const item = { id: "i", attributes: wanted({ ...published, ...edited }), visible: undefined };
      const theirs = flatten(item.attributes);
      const plan = planItem(wanted(now), base, item, "update");
      const result = plan.action === "update" ? flatten(plan.view) : theirs;
      for (const key of new Set([...base.keys(), ...theirs.keys(), ...result.keys()])) {
        const untouched = JSON.stringify(theirs.get(key)) === JSON.stringify(base.get(key));
        const goal = untouched ? flatten(wanted(now)).get(key) : theirs.get(key);
        expect(result.get(key), key).toEqual(goal);
      }
    }),
    runs(300),
  );
});

test("a flattened view converts back to the same view", () => {
  fc.assert(
    fc.property(metadata, (signal) => {
      const view = wanted({ ...signal, gapDetection: null });
      expect(unflatten(flatten(view))).toEqual(JSON.parse(JSON.stringify(view)));
    }),
    runs(100),
  );
});

test("a signal can be published when all required attributes are known", () => {
  const rules = ["name", "engUnit", "labels", "labels.site"];
  expect(unmetRules({}, rules)).toEqual(rules);
  expect(unmetRules({ name: "n", engUnit: " ", labels: { hall: ["1"], site: [""] } }, rules)).toEqual([
    "engUnit",
    "labels.site",
  ]);
  const states = { type: "enum", enumValues: { "0": "off" } } as const;
  expect([unmetRules(states, ["engUnit"]), unmetRules({ type: "enum" }, ["engUnit"])]).toEqual([[], ["enumValues"]]);
  expect(["unit", "labels.", "labels.a b", "labels.site"].map((rule) => qualityRule.safeParse(rule).success)).toEqual([
    false,
    false,
    false,
    true,
  ]);
});
