import { expect, test } from "vitest";
import { maxRows, parseTagQuery, viewTags } from "../../../src/web/events.ts";
import { tagWith } from "../../support/status.ts";

const tags = [
  tagWith({ input: "hall.room1.temp", source: "hall", address: "sensors/room1/env" }),
  tagWith({ input: "hall.room2.temp", source: "hall", address: "sensors/room2/env", quality: "bad" }),
  tagWith({ input: "line3.speed", source: "plc", address: "ns=2;s=Line.Speed" }),
];
const all = { search: "", first: 0, count: 50 };
const inputs = (search: string) => viewTags(tags, { ...all, search }).rows.map(({ input }) => input);

test("a search matches rows that have every word in source, input, address or quality, whatever its case", () => {
  expect(inputs("ROOM")).toEqual(["hall.room1.temp", "hall.room2.temp"]);
  expect(inputs("  hall   bad ")).toEqual(["hall.room2.temp"]);
  expect(inputs("plc line.speed")).toEqual(["line3.speed"]);
  expect(inputs("nothing")).toEqual([]);
});

test("a view has the requested rows and their total number", () => {
  const many = Array.from({ length: 1_000 }, (_, i) => tagWith({ input: `t${i}` }));
  const view = viewTags(many, { search: "t9", first: 5, count: 3 });
  expect(view).toMatchObject({ total: 1_000, matching: 111, first: 5 });
  expect(view.rows.map(({ input }) => input)).toEqual(["t94", "t95", "t96"]);
});

test("a first row beyond the end gives the last rows", () => {
  expect(viewTags(tags, { search: "", first: 9_999, count: 2 })).toMatchObject({ first: 1, matching: 3 });
});

test("a query from outside is bounded, and invalid parts are ignored", () => {
  const parse = (text: string) => parseTagQuery(new URLSearchParams(text));
  expect(parse("")).toEqual({ search: "", first: 0, count: 50 });
  expect(parse("first=-1&count=1e9&search=" + "x".repeat(999))).toEqual({
    search: "x".repeat(200),
    first: 0,
    count: maxRows,
  });
  expect(parse("first=abc&count=")).toEqual({ search: "", first: 0, count: 0 });
});
