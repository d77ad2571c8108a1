// The rows of the table of tags.
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import { maxRows, parseTagQuery, viewTags } from "../../../src/web/tag-view.ts";
import { tagWith } from "../../support/status.ts";

const tags = [
  tagWith({ input: "hall.room1.temp", source: "hall", address: "sensors/room1/env" }),
  tagWith({ input: "hall.room2.temp", source: "hall", address: "sensors/room2/env", quality: "bad" }),
  tagWith({ input: "line3.speed", source: "plc", address: "ns=2;s=Line.Speed" }),
];
const all = { search: "", source: "", state: undefined, sort: "order", first: 0, count: 50 } as const;
const inputs = (search: string) => viewTags(tags, { ...all, search }).rows.map(({ input }) => input);

test("a search matches rows that have every word in source, input, address or quality, whatever its case", () => {
  expect(inputs("ROOM")).toEqual(["hall.room1.temp", "hall.room2.temp"]);
  expect(inputs("  hall   bad ")).toEqual(["hall.room2.temp"]);
  expect(inputs("plc line.speed")).toEqual(["line3.speed"]);
  expect(inputs("nothing")).toEqual([]);
});

test("a view has the requested rows and their total number", () => {
  const many = Array.from({ length: 1_000 }, (_, i) => tagWith({ input: `t${i}` }));
  const view = viewTags(many, { ...all, search: "t9", first: 5, count: 3 });
  expect(view).toMatchObject({ total: 1_000, matching: 111, first: 5 });
  expect(view.rows.map(({ input }) => input)).toEqual(["t94", "t95", "t96"]);
});

test("a first row beyond the end gives the last rows", () => {
  expect(viewTags(tags, { ...all, first: 9_999, count: 2 })).toMatchObject({ first: 1, matching: 3 });
});

test("a query from outside is bounded, and invalid parts are ignored", () => {
  const parse = (text: string) => parseTagQuery(new URLSearchParams(text));
  expect(parse("")).toEqual(all);
  expect(parse("first=-1&count=1e9&state=worse&sort=price&search=" + "x".repeat(999))).toEqual({
    ...all,
    search: "x".repeat(200),
    count: maxRows,
  });
  expect(parse("first=abc&count=")).toEqual({ ...all, count: 0 });
  expect(parse("source=hall&state=bad&sort=age")).toEqual({ ...all, source: "hall", state: "bad", sort: "age" });
});

test("rows are those of a source and a state", () => {
  const { quality: _none, ...unread } = tagWith({ input: "new", source: "plc" });
  const view = (changes: Partial<Parameters<typeof viewTags>[1]>) =>
    viewTags([...tags, unread], { ...all, ...changes }).rows.map(({ input }) => input);
  expect(view({ source: "plc" })).toEqual(["line3.speed", "new"]);
  expect(view({ state: "bad" })).toEqual(["hall.room2.temp"]);
  expect(view({ state: "none" })).toEqual(["new"]);
  expect(view({ state: "problem" })).toEqual(["hall.room2.temp", "new"]);
  expect(view({ state: "good", source: "hall" })).toEqual(["hall.room1.temp"]);
});

test("rows are in the order of the name, the age or the state, and the status keeps its own", () => {
  const at = (input: string, time: number, quality: "good" | "bad" | "uncertain") =>
    tagWith({ input, time: epochMicros(time), quality });
  const given = [at("b", 2, "good"), at("c", 1, "uncertain"), at("a", 3, "bad")];
  const view = (sort: "order" | "name" | "age" | "state") =>
    viewTags(given, { ...all, sort }).rows.map(({ input }) => input);
  expect(view("name")).toEqual(["a", "b", "c"]);
  expect(view("age")).toEqual(["c", "b", "a"]);
  expect(view("state")).toEqual(["a", "c", "b"]);
  expect(view("order")).toEqual(["b", "c", "a"]);
});
