// The states of a gap are the same in the code's table, in the document and in the behaviour of the rows.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { type GapEvent, gapLife } from "../../../../src/agent/gaps/gap.ts";
import { gapRows } from "../../../../src/agent/gaps/gap-rows.ts";
import { epochMicros } from "../../../../src/core/point.ts";

const states = ["none", "open", "filling", "filled", "partly", "lost"] as const;
const events = Object.keys(gapLife) as GapEvent[];
const cells = (event: GapEvent) => {
  const next: Partial<Record<string, string>> = gapLife[event];
  return states.map((state) => next[state] ?? "");
};

test("the table in the document equals the one in the code", () => {
  const text = readFileSync(resolve(import.meta.dirname, "../../../../docs/internals.md"), "utf8");
  const rows = text
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim().replaceAll("`", "")))
    .filter(([, event]) => events.some((one) => one === event))
    .map((row) => row.slice(1, 8));
  expect(rows).toEqual(events.map((event) => [event, ...cells(event)]));
});

test("in each state each event does what the table lists, and other events leave the row unchanged", () => {
  const at = epochMicros(1e15);
  const row = { cause: "disconnected", reason: "x", from: at, to: at, tags: 1 } as const;
  const paths = {
    open: ["begins"],
    filling: ["reported"],
    filled: ["reported", "found"],
    partly: ["reported", "partlyFound"],
    lost: ["ends"],
  } as const;
  for (const [i, state] of Object.keys(paths).entries())
    for (const event of events) {
      const rows = gapRows(new Map());
      const [first, then] = paths[state as keyof typeof paths];
      const { id } = rows.add(first, { ...row, inputs: [] }, at);
      if (then) rows.change(id, {}, then);
      expect(rows.get(id)?.state).toBe(state);
      rows.change(id, { points: 7 }, event);
      const next = cells(event)[i + 1];
      expect({ event, state, ...rows.get(id) }).toMatchObject(next ? { state: next, points: 7 } : { state });
      expect(rows.get(id)?.points).toBe(next ? 7 : undefined);
    }
});
