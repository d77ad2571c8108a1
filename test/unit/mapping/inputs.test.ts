// Which input a reading feeds, and which Input IDs are rejected.
import { expect, test } from "vitest";
import { InputOwners } from "../../../src/mapping/input-owners.ts";
import { signalAttributes } from "../../../src/wire/signal-view.ts";
import { reading, tagId, tryMapping } from "../../support/mapping.ts";

test("the captures of a template determine the input", () => {
  const { read } = tryMapping([{ input: "hall.{room}.temp" }]);
  expect(read(1, { captures: { room: "kitchen" } })).toEqual([["hall.kitchen.temp", 1]]);
  expect(read(2, { captures: { room: "Küche 2" } })).toEqual([["hall.Kuche_2.temp", 2]]);
});

test("inputs of one tag are reported by exception separately, however often their captures are created", () => {
  const { read, mapping } = tryMapping([{ input: "{room}", report: {} }]);
  expect(read(1, { captures: { room: "a" } })).toHaveLength(1);
  expect(read(1, { captures: { room: "b" } })).toHaveLength(1);
  expect(read(1, { captures: { room: "a" } })).toHaveLength(0);
  expect(mapping.tags().map(({ input, readings }) => [input, readings])).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
});

test("a tag without a reading is shown by its template", () => {
  const { mapping } = tryMapping([{ input: "hall.{room}", signal: { engUnit: "°C" } }, { input: "fixed" }]);
  expect(mapping.tags()).toMatchObject([
    { input: "hall.{room}", resolved: false, unit: "°C", readings: 0 },
    { input: "fixed", resolved: true, readings: 0 },
  ]);
});

test("a page of the inputs equals that part of the whole list, wherever it begins and ends", () => {
  const rules = [{ input: "{room}" }, { input: "fixed" }, { input: "none.{x}" }, { input: "hall.{room}" }];
  const { read, mapping } = tryMapping(rules);
  for (const room of ["a", "b", "c", "★"]) {
    read(1, { captures: { room } });
    read(1, { captures: { room }, tag: tagId(3) });
  }
  const all = mapping.tags();
  expect(all.map(({ input }) => input)).toEqual([
    "a",
    "b",
    "c",
    "fixed",
    "none.{x}",
    "hall.a",
    "hall.b",
    "hall.c",
    "hall",
  ]);
  for (let first = 0; first <= all.length + 1; first++)
    for (let count = 0; count <= all.length + 1; count++)
      expect(mapping.tagsIn(first, count)).toEqual({ total: all.length, tags: all.slice(first, first + count) });
  for (let most = 0; most <= all.length + 1; most++) {
    const values: unknown[] = [];
    const visited = mapping.values(most, (input, value) => values.push([input, value]));
    expect(values).toEqual(all.slice(0, most).map(({ input, value }) => [input, value]));
    expect(visited).toBe(values.length);
  }
});

test("captures that give no valid Input ID are refused, counted and logged once in ten seconds", async () => {
  const { read, mapping, runtime, clock } = tryMapping([{ input: "{name}" }]);
  for (const name of ["★", "☆", "", "★"]) expect(read(1, { captures: { name } })).toEqual([]);
  expect(mapping.refusals().map(({ readings }) => readings)).toEqual([2, 1, 1]);
  expect(runtime.metric("mapping_dropped_readings_total", { reason: "inputRefused" })).toBe(4);
  expect(runtime.lines).toHaveLength(1);
  await clock.advance(10_000);
  read(1, { captures: { name: "!" } });
  expect(runtime.lines[1]?.fields).toMatchObject({ suppressed: 2 });
});

test("two names that map to the same Input ID are not mixed: the second is refused", () => {
  const { read, mapping } = tryMapping([{ input: "x.{name}" }]);
  const named = (name: string) => ({ captures: { name }, address: `hall/${name}` });
  expect(read(1, named("a b"))).toEqual([["x.a_b", 1]]);
  expect(read(2, named("a_b"))).toEqual([]);
  expect(read(3, named("a b"))).toEqual([["x.a_b", 3]]);
  expect(mapping.refusals()).toMatchObject([
    {
      tag: 0,
      input: "x.a_b",
      reason: "second address of this Input ID, which hall/a b feeds",
      readings: 1,
      remedy: expect.stringContaining("another name"),
    },
  ]);
});

test("captures that the template does not use may differ", () => {
  const { read } = tryMapping([{ input: "x.{room}" }]);
  expect(read(1, { captures: { room: "a", floor: "1" } })).toEqual([["x.a", 1]]);
  expect(read(2, { captures: { room: "a", floor: "2" } })).toEqual([["x.a", 2]]);
});

test("an Input ID that another tag or source feeds is refused", () => {
  const owners = new InputOwners();
  const first = tryMapping([{ input: "a" }, { input: "{x}" }], { source: "one", owners });
  const second = tryMapping([{ input: "{x}" }], { source: "two", owners });
  expect(first.read(1, { tag: tagId(1), captures: { x: "a" } })).toEqual([]);
  expect(second.read(1, { captures: { x: "a" } })).toEqual([]);
  expect(second.mapping.refusals()[0]?.reason).toBe("is fed already by one: tag 0");

  first.mapping[Symbol.dispose]();
  const again = tryMapping([{ input: "a" }], { source: "two", owners });
  expect(again.read(1)).toEqual([["a", 1]]);
});

test("a tag creates no more Input IDs than maxInputs", () => {
  const { read, mapping } = tryMapping([{ input: "{id}", maxInputs: 3 }]);
  for (let id = 0; id < 1_000; id++) read(id, { captures: { id: String(id) } });
  expect(mapping.tags()).toHaveLength(3);
  expect(mapping.refusals()).toHaveLength(1);
  expect(mapping.refusals()[0]).toMatchObject({
    readings: 997,
    reason: expect.stringContaining("3 Input IDs already"),
  });
  expect(read(5, { captures: { id: "0" } })).toEqual([["0", 5]]);
});

test("refused IDs are remembered up to a bound", () => {
  const { read, mapping } = tryMapping([{ input: "{id}" }]);
  for (let id = 0; id < 1_000; id++) read(id, { captures: { id: String.fromCodePoint(0x2500 + id) } });
  const refusals = mapping.refusals();
  expect(refusals).toHaveLength(100);
  expect(refusals.reduce((sum, { readings }) => sum + readings, 0)).toBeGreaterThanOrEqual(900);
});

test("a reading of an unconfigured tag is only counted", () => {
  const { read, runtime } = tryMapping([{}]);
  expect(read(1, { tag: tagId(7) })).toEqual([]);
  expect(runtime.metric("mapping_dropped_readings_total")).toBe(1);
});

test("a signal is described before its first point, and configuration takes precedence over the device", () => {
  const { mapping, described } = tryMapping([
    { input: "hall.{room}", signal: { engUnit: "K", name: "{room} temperature", labels: { room: ["{room}"] } } },
  ]);
  const captures = { room: "Küche" };
  const { tag } = reading(0);
  const signal = { engUnit: "°C", description: "PT100", name: "Temp" };
  mapping.map({ readings: [], descriptions: [{ tag, captures, signal }] });
  expect(described).toEqual([]);

  mapping.map({ readings: [reading(1, { captures })], descriptions: [{ tag, captures, signal }] });
  const full = { engUnit: "K", description: "PT100", name: "Küche temperature", labels: { room: ["Küche"] } };
  expect(described).toEqual([["hall.Kuche", full]]);
  expect(mapping.tags()[0]).toMatchObject({ unit: "K" });

  mapping.map({ readings: [reading(2, { captures })], descriptions: [{ tag, captures, signal }] });
  expect(described).toHaveLength(1);
  mapping.map({ readings: [], descriptions: [{ tag, captures, signal: { ...signal, description: "PT1000" } }] });
  expect(described.at(-1)).toEqual(["hall.Kuche", { ...full, description: "PT1000" }]);
});

test("captured and device texts that the service does not accept are cut, and empty names omitted", () => {
  const { mapping, described } = tryMapping([{ input: "hall.{room}", signal: { name: "{room}", engUnit: "V" } }]);
  const { tag } = reading(0);
  const long = "x".repeat(2_000);
  const enumValues = { 0: "", 1: "on", 2: `${"x".repeat(126)}\u{1f600}\u{1f600}` };
  const signal = { description: long, type: "enum", enumValues } as const;
  const descriptions = [{ tag, captures: { room: long }, signal }];
  mapping.map({ readings: [{ room: long }, { room: "" }].map((captures) => reading(1, { captures })), descriptions });
  const [first, second] = described.map(([, metadata]) => metadata);
  expect(first).toEqual({
    name: `${"x".repeat(127)}…`,
    engUnit: "V",
    description: `${"x".repeat(999)}…`,
    type: "enum",
    enumValues: { 1: "on", 2: `${"x".repeat(126)}…` },
  });
  expect(second).toEqual({ engUnit: "V" });
  for (const metadata of [first, second]) expect(signalAttributes.safeParse(metadata).success).toBe(true);
});

test("a device that declares its signal an enumeration names its states", () => {
  const { mapping, read } = tryMapping([{}]);
  const { tag, captures } = reading(0);
  const signal = { type: "enum", enumValues: { 0: "stopped", 1: "running" } } as const;
  mapping.map({ readings: [], descriptions: [{ tag, captures, signal }] });
  expect(read("running")).toEqual([["a", 1]]);
  expect(mapping.tags()[0]).toMatchObject({ text: "running" });
});

test("released Input IDs are used again, also those beyond the remembered refused ones", () => {
  const owners = new InputOwners();
  const names = Array.from({ length: 150 }, (_, i) => `n${i}`);
  const first = tryMapping([{ input: "{name}" }], { source: "one", owners });
  const second = tryMapping([{ input: "{name}" }], { source: "two", owners });
  // A driver reuses the object for equal captures.
  const captures = names.map((name) => ({ name }));
  for (const each of captures) first.read(1, { captures: each });
  for (const each of captures) expect(second.read(2, { captures: each })).toEqual([]);
  const reasons = second.mapping.refusals().map(({ reason }) => reason);
  expect(reasons.filter((reason) => !reason.startsWith("is fed already"))).toEqual([
    "100 Input IDs of this tag are refused and listed; further ones are counted here",
  ]);

  // As a reload does with a removed source.
  owners.release("one");

  expect(captures.flatMap((each) => second.read(2, { captures: each }))).toEqual(names.map((name) => [name, 2]));
  expect(second.mapping.refusals()).toEqual([]);
});

test("the metadata of a fixed Input ID does not depend on when its tag gets it", () => {
  const owners = new InputOwners();
  const rules = [{ input: "a", signal: { name: "temperature {line}" } }];
  const captures = { line: "7" };
  const other = tryMapping([{ input: "a" }], { source: "one", owners });
  const waiting = tryMapping(rules, { source: "two", owners });
  expect(waiting.read(1, { captures })).toEqual([]);
  other.mapping[Symbol.dispose]();
  expect(waiting.read(2, { captures })).toEqual([["a", 2]]);

  const first = tryMapping(rules);
  first.read(1, { captures });
  expect(waiting.described).toEqual(first.described);
});

test("refused Input IDs that are released make room in the list for others", () => {
  const owners = new InputOwners();
  const first = tryMapping([{ input: "{name}" }], { source: "one", owners });
  const { mapping, read } = tryMapping([{ input: "{name}" }], { source: "two", owners });
  const captures = Array.from({ length: 101 }, (_, i) => ({ name: `n${i}` }));
  for (const each of captures) first.read(1, { captures: each });
  for (const each of captures) read(2, { captures: each });
  owners.release("one");
  for (const each of captures) read(2, { captures: each });
  // Characters that are not allowed in an Input ID.
  const names = Array.from({ length: 100 }, (_, i) => String.fromCodePoint(0x2500 + i));
  for (const name of names) read(3, { captures: { name } });
  expect(mapping.refusals()).toHaveLength(100);
  expect(mapping.refusals().every(({ readings }) => readings === 1)).toBe(true);
});
