import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import { History, historySamples, historyStepMs, sampleOf as sampleOfStatus } from "../../../src/web/history.ts";
import { statusWith, tagWith } from "../../support/status.ts";

const sampleOf = (i: number, value: number | undefined, input = "a") => {
  const { value: _, ...tag } = tagWith({ input });
  return sampleOfStatus(
    statusWith({
      time: epochMicros(i * historyStepMs * 1_000),
      tags: [value === undefined ? tag : { ...tag, value }],
    }),
  );
};

test("samples are listed by time, with null for a missing value", () => {
  const history = new History();
  for (const [i, value] of [undefined, 1, undefined, 3].entries()) history.sample(sampleOf(i, value));
  expect(history.times).toEqual([0, 5_000, 10_000, 15_000]);
  expect(history.tag("a")).toEqual([null, 1, null, 3]);
  expect(history.figure("lagMs")).toEqual([1_200, 1_200, 1_200, 1_200]);
});

test("after 15 minutes the oldest samples are dropped", () => {
  const history = new History();
  for (let i = 0; i < historySamples + 20; i++) history.sample(sampleOf(i, i));
  expect(history.tag("a")).toHaveLength(historySamples);
  expect(history.tag("a").slice(0, 2)).toEqual([20, 21]);
  expect(history.tag("a").at(-1)).toBe(historySamples + 19);
  expect(history.times.at(-1)).toBe((historySamples + 19) * historyStepMs);
});

test("the last digits of a large counter are preserved", () => {
  const history = new History();
  for (let i = 0; i < 4; i++) history.sample(sampleOf(i, 5e12 + i));
  expect(history.tag("a")).toEqual([5e12, 5e12 + 1, 5e12 + 2, 5e12 + 3]);
});

test("a removed tag loses its history, and a new one has none before its first value", () => {
  const history = new History();
  history.sample(sampleOf(0, 1, "old"));
  history.sample(sampleOf(1, 2, "new"));
  expect(history.tag("old")).toEqual([]);
  expect(history.tag("new")).toEqual([null, 2]);
  history.sample(sampleOf(2, 1e9, "third"));
  history.sample(sampleOf(3, 1e9 + 1, "third"));
  expect(history.tag("third")).toEqual([null, null, 1e9, 1e9 + 1]);
});

test("many tags added later in another order have every sample once the time of few tags has passed", () => {
  const history = new History();
  history.sample(sampleOf(0, 1));
  const tags = Array.from({ length: 40 }, (_, i) => tagWith({ input: `t${i}` }));
  history.sample(sampleOfStatus(statusWith({ tags })));
  const reordered = sampleOfStatus(statusWith({ tags: tags.toReversed() }));
  for (let i = 2; i <= historySamples; i++) history.sample(reordered);
  expect(tags.filter(({ input }) => history.tag(input).includes(null))).toEqual([]);
});

test("more than 10,000 tags take no more memory than 10,000", () => {
  const history = new History();
  const tags = Array.from({ length: 10_002 }, (_, i) => tagWith({ input: `t${i}` }));
  history.sample(sampleOfStatus(statusWith({ tags })));
  expect(history.tag("t9999")).toEqual([21.5]);
  expect(history.tag("t10001")).toEqual([]);
});
