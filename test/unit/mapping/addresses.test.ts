// Which address feeds an Input ID, and what happens to the values of a second one.
import { expect, test } from "vitest";
import { epochMicros, type InputId } from "../../../src/core/point.ts";
import { type AddressMemory, InputOwners } from "../../../src/mapping/input-owners.ts";
import { reading, tagId, tryMapping } from "../../support/mapping.ts";

const ambiguities = new Map([[tagId(0), { message: "several", remedy: "use {path}" }]]);
const from = (address: string) => ({ address });

/** The addresses of a source that are kept across restarts. */
function memory() {
  const kept = new Map<string, string>();
  const addresses: AddressMemory = {
    recall: (tag, input) => kept.get(`${tag} ${input}`),
    remember: (tag, input, address) => void kept.set(`${tag} ${input}`, address),
    *inputs() {
      for (const [key, address] of kept) {
        const [tag = "", input = ""] = key.split(" ");
        yield { tag: tagId(Number(tag)), input: input as InputId, address }; // as stored earlier
      }
    },
  };
  return { kept, addresses };
}

test("values of a second address are refused, counted and listed with both addresses and the remedy", () => {
  const { read, mapping, runtime } = tryMapping([{ input: "line3.{name}" }], { ambiguities });
  const captures = { name: "Current" };
  expect(read(1, { captures, address: "M01/Current" })).toEqual([["line3.Current", 1]]);
  expect(read(2, { captures, address: "M02/Current" })).toEqual([]);
  expect(read(3, { captures, address: "M02/Current", historical: true })).toEqual([]);
  expect(read(4, { captures, address: "M01/Current" })).toEqual([["line3.Current", 4]]);
  expect(mapping.refusals()).toEqual([
    {
      tag: 0,
      input: "line3.Current",
      address: "M02/Current",
      fedBy: { source: "bus1", address: "M01/Current" },
      reason: "second address of this Input ID, which M01/Current feeds",
      remedy: "use {path}",
      readings: 2,
    },
  ]);
  expect(runtime.metric("mapping_dropped_readings_total", { reason: "secondAddress" })).toBe(2);
  expect(runtime.lines).toHaveLength(1);
  expect(mapping.tags()).toMatchObject([{ address: "M01/Current", value: 4, readings: 2, bad: 0, quality: "good" }]);
  expect(mapping.refusalOf(tagId(0), captures, "M02/Current")?.readings).toBe(2);
  expect(mapping.refusalOf(tagId(0), captures, "M01/Current")).toBeUndefined();
});

test("a failing second address does not make the input fail", () => {
  const failed: string[] = [];
  const watch = { failed: (input: string) => void failed.push(input), recovered() {} };
  const { read, mapping } = tryMapping([{}], { watch });
  read(1, from("a/temp"));
  read(undefined, { address: "b/temp", quality: "bad", reason: "no JSON" });
  expect(mapping.tags()).toMatchObject([{ value: 1, quality: "good", bad: 0 }]);
  expect(failed).toEqual(["a (b/temp)"]);
});

test("only a usable value binds an address to an Input ID", () => {
  const { read } = tryMapping([{ valid: { max: 10 } }]);
  expect(read(undefined, { address: "x", quality: "bad" })).toEqual([]);
  expect(read("offline", from("y"))).toEqual([]);
  expect(read(11, from("z"))).toEqual([]);
  expect(read(5, from("a/temp"))).toEqual([["a", 5]]);
  expect(read(6, from("z"))).toEqual([]);
});

test("the address stays the same across a reconnect", () => {
  const { read, mapping } = tryMapping([{}]);
  read(1, from("a/temp"));
  mapping.reconnected();
  expect(read(2, from("b/temp"))).toEqual([]);
  expect(read(3, from("a/temp"))).toEqual([["a", 3]]);
});

test("the first address listed by a connection feeds the Input ID, whichever value arrives first", () => {
  const { read, mapping } = tryMapping([{ input: "{name}" }]);
  const found = ["M01", "M02", "M03"].map((motor) => ({
    tag: tagId(0),
    captures: { name: "Current" },
    address: `${motor}/Current`,
  }));
  mapping.claim(found);
  expect(mapping.refusals().map(({ address, readings }) => [address, readings])).toEqual([
    ["M02/Current", 0],
    ["M03/Current", 0],
  ]);
  expect(read(1, { captures: { name: "Current" }, address: "M03/Current" })).toEqual([]);
  expect(read(2, { captures: { name: "Current" }, address: "M01/Current" })).toEqual([["Current", 2]]);
  mapping.claim(found.toReversed());
  expect(read(3, { captures: { name: "Current" }, address: "M01/Current" })).toEqual([["Current", 3]]);
});

test("a tag that fails as a whole shows at its input, whatever its address", () => {
  const { read, mapping } = tryMapping([{}]);
  read(1, from("Motors/M01"));
  read(undefined, { address: "Motors/**", wholeTag: true, quality: "bad", reason: "nothing there" });
  expect(mapping.tags()).toMatchObject([{ quality: "bad", reason: "nothing there", address: "Motors/M01" }]);
  expect(mapping.refusals()).toEqual([]);
});

test("shared: true lets several addresses of a tag feed its Input ID", () => {
  const { read, mapping } = tryMapping([{ shared: true }]);
  expect([read(1, from("a/temp")), read(2, from("b/temp")), read(3, from("a/temp"))]).toEqual([
    [["a", 1]],
    [["a", 2]],
    [["a", 3]],
  ]);
  expect(mapping.refusals()).toEqual([]);
  expect(mapping.tags()).toMatchObject([{ address: "a/temp" }]);
});

test("several tags feed one Input ID only if all of them are shared", () => {
  const owners = new InputOwners();
  const first = tryMapping([{ shared: true }], { source: "one", owners });
  const second = tryMapping([{ shared: true }], { source: "two", owners });
  const third = tryMapping([{}], { source: "three", owners });
  expect(first.read(1)).toEqual([["a", 1]]);
  expect(second.read(2)).toEqual([["a", 2]]);
  expect(third.read(3, from("hr:7"))).toEqual([]);
  expect(third.mapping.refusals()).toMatchObject([
    { input: "a", address: "hr:7", fedBy: { source: "one", address: "hr:0" } },
  ]);
  // Closing a source releases its claims, but not those of others.
  first.mapping[Symbol.dispose]();
  expect(tryMapping([{}], { source: "four", owners }).read(4)).toEqual([]);
});

test("the choice among addresses is persisted, and nothing when each has its own Input ID", () => {
  const { kept, addresses } = memory();
  const rules = [{ input: "a" }, { input: "b" }];
  const before = tryMapping(rules, { addresses, ambiguities });
  before.read(1, from("x/temp"));
  before.read(1, { tag: tagId(1), address: "hr:1" });
  expect([...kept]).toEqual([["0 a", "x/temp"]]);

  const { read } = tryMapping(rules, { addresses, ambiguities });
  expect(read(2, from("b/temp"))).toEqual([]);
  expect(read(3, from("x/temp"))).toEqual([["a", 3]]);
});

test("an address feeds its Input ID after a restart as well, whether it or its refused rival sends first", () => {
  const { kept, addresses } = memory();
  const before = tryMapping([{}], { addresses });
  before.read(1, from("x/temp"));
  expect(kept.size).toBe(0);
  before.read(2, from("b/temp"));

  const { read } = tryMapping([{}], { addresses });
  expect(read(3, from("b/temp"))).toEqual([]);
  expect(read(4, from("x/temp"))).toEqual([["a", 4]]);
});

test("after a restart every Input ID has the address that it had, however many second addresses were refused", () => {
  const { addresses } = memory();
  const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
  const before = tryMapping([{ input: "{name}" }], { addresses });
  for (const room of ["x", "b"])
    for (const name of names) before.read(1, { captures: { name }, address: `${room}/${name}` });

  const { read } = tryMapping([{ input: "{name}" }], { addresses });
  for (const name of names) expect(read(2, { captures: { name }, address: `b/${name}` })).toEqual([]);
  for (const name of names) expect(read(3, { captures: { name }, address: `x/${name}` })).toEqual([[name, 3]]);
});

test("names that map to one Input ID do not swap at a restart", () => {
  const { addresses } = memory();
  const cold = (name: string) => ({ captures: { name }, address: `hall/${name}` });
  const before = tryMapping([{ input: "{name}" }], { addresses });
  expect(before.read(1, cold("Cold Room"))).toEqual([["Cold_Room", 1]]);
  expect(before.read(2, cold("Cold_Room"))).toEqual([]);

  const { read, mapping } = tryMapping([{ input: "{name}" }], { addresses });
  expect(read(3, cold("Cold_Room"))).toEqual([]);
  expect(read(4, cold("Cold Room"))).toEqual([["Cold_Room", 4]]);
  expect(mapping.refusals()).toMatchObject([{ address: "hall/Cold_Room", fedBy: { address: "hall/Cold Room" } }]);
  expect(mapping.tags()).toHaveLength(1);
});

test("of two tags with one Input ID the same one feeds it after a restart, also when the other sends first", () => {
  const memories = { one: memory(), two: memory() };
  const start = () => {
    const owners = new InputOwners();
    const open = (source: "one" | "two") =>
      tryMapping([{ input: "{name}" }], { source, owners, addresses: memories[source].addresses });
    return { one: open("one"), two: open("two") };
  };
  const names = Array.from({ length: 150 }, (_, i) => `n${i}`);
  const readAll = ({ read }: ReturnType<typeof tryMapping>, source: string) =>
    names.flatMap((name) => read(1, { captures: { name }, address: `${source}/${name}` }));
  const before = start();
  expect(readAll(before.one, "one")).toHaveLength(names.length);
  expect(readAll(before.two, "two")).toEqual([]);

  const after = start();
  expect(readAll(after.two, "two")).toEqual([]);
  expect(after.two.mapping.refusals().find(({ input }) => input === "n0")?.fedBy).toEqual({
    source: "one",
    address: "one/n0",
  });
  expect(readAll(after.one, "one")).toHaveLength(names.length);
  after.one.mapping[Symbol.dispose]();
  expect(readAll(after.two, "two")).toHaveLength(names.length);
});

test("second addresses are listed up to a bound and counted beyond it", () => {
  const { read, mapping, runtime } = tryMapping([{}]);
  for (let n = 0; n < 1_000; n++) read(n, from(`t/${n}`));
  expect(mapping.refusals()).toHaveLength(100);
  expect(runtime.metric("mapping_dropped_readings_total", { reason: "secondAddress" })).toBe(999);
});

test("metadata and gaps of a second address are not applied to the Input ID", () => {
  const { read, mapping, described } = tryMapping([{}]);
  read(1, from("a/temp"));
  const { tag, captures } = { tag: tagId(0), captures: {} };
  mapping.map({ readings: [], descriptions: [{ tag, captures, address: "b/temp", signal: { engUnit: "bar" } }] });
  mapping.map({ readings: [], descriptions: [{ tag, captures, address: "a/temp", signal: { engUnit: "°C" } }] });
  expect(described.map(([, { engUnit }]) => engUnit)).toEqual([undefined, "°C"]);
  expect(mapping.inputOf(tag, captures, "b/temp")).toBeUndefined();
  expect(mapping.inputOf(tag, captures, "a/temp")).toBe("a");
});

test("values of tags that share an Input ID never get the same time", () => {
  const owners = new InputOwners();
  const tags = ["one", "two"].map((source) => tryMapping([{ shared: true }], { source, owners }));
  const times = tags.flatMap(({ mapping }) =>
    mapping
      .map({ readings: [reading(1, { clock: "agent", time: epochMicros(5) })], descriptions: [] })
      .map(({ time }) => time),
  );
  expect(times).toEqual([5, 6]);
});

test("arrival times of Input IDs without a source are dropped", () => {
  const owners = new InputOwners();
  // valid Input IDs
  const inputs = (round: number) => Array.from({ length: 5_000 }, (_, i) => `${round}.${i}` as InputId);
  for (const round of [0, 1, 2]) {
    for (const input of inputs(round)) {
      owners.claim({ input, address: "", of: { id: tagId(0), rule: { shared: true }, parts: { source: "one" } } });
      owners.sharedOf(input).arrival = 7;
    }
    owners.release("one");
  }
  const known = [0, 1, 2].map((round) => inputs(round).filter((input) => owners.sharedOf(input).arrival === 7).length);
  // Only the claims released last are kept, because the changed source may claim them again.
  expect(known).toEqual([0, 0, 5_000]);
});

test.each([
  ["a fixed Input ID", "a"],
  ["a captured one", "{x}"],
])("a tag takes %s over when the source that had it is gone", (_, input) => {
  const owners = new InputOwners();
  const first = tryMapping([{ input: "a" }], { source: "one", owners });
  const second = tryMapping([{ input }], { source: "two", owners });
  const captures = { x: "a" };
  expect(second.read(1, { captures })).toEqual([]);
  first.mapping[Symbol.dispose]();
  expect(second.read(2, { captures })).toEqual([["a", 2]]);
  expect(second.read(3, { captures: { ...captures } })).toEqual([["a", 3]]);
  expect(second.mapping.refusals()).toEqual([]);
});
