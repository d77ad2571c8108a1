import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";
import { staleTagWatch } from "../../../../src/source/mqtt/receiver/stale-tag-watch.ts";

const tags = [{ topic: "a" }, { topic: "b", expectEvery: "10m" }, { topic: "c/{x}", expectEvery: "1h" }].map((text) =>
  mqttDriver.tag.parse(text),
);
const minute = 60_000;

test("a tag silent for too long is reported once, until it has a value again", () => {
  const watch = staleTagWatch(tags, 0);
  expect(watch.check(9 * minute)).toEqual([]);
  const silent = watch.check(10 * minute);
  expect(silent).toMatchObject([{ topic: "b", named: true }]);
  const own = silent.map((tag) => watch.reading(tag, epochMicros(0)));
  expect(own).toMatchObject([{ tag: 1, quality: "bad", reason: "no message for 10m" }]);
  watch.received(own, 11 * minute);
  expect(watch.check(40 * minute)).toEqual([]);

  watch.received(
    own.map((reading) => ({ ...reading })),
    50 * minute,
  );

  expect(watch.check(60 * minute)).toMatchObject([
    { topic: "b", named: true },
    { topic: "c/{x}", named: false },
  ]);
});

test("without expectEvery no tag is watched", () => {
  expect(staleTagWatch(tags.slice(0, 1), 0).intervalMs).toBeUndefined();
});
