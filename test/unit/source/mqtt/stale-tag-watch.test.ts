import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { mqttDriver } from "../../../../src/source/mqtt/driver.ts";
import { staleTagWatch } from "../../../../src/source/mqtt/receiver/message-receiver.ts";

const tags = [{ topic: "a" }, { topic: "b", expectEvery: "10m" }, { topic: "c/{x}", expectEvery: "1h" }].map((text) =>
  mqttDriver.tag.parse(text),
);
const minute = 60_000;

test("a tag silent for too long is reported once, until it has a value again", () => {
  const watch = staleTagWatch(tags, 0)!;
  const check = (minutes: number) => watch.check(minutes * minute, epochMicros(0));
  expect(check(9)).toEqual([]);
  const silent = check(10);
  expect(silent).toMatchObject([{ topic: "b" }]);
  const own = silent.flatMap(({ readings }) => readings);
  expect(own).toMatchObject([{ tag: 1, quality: "bad", reason: "no message for 10m" }]);
  watch.received(own, 11 * minute);
  expect(check(40)).toEqual([]);

  watch.received(
    own.map((reading) => ({ ...reading })),
    50 * minute,
  );

  expect(check(60)).toMatchObject([
    { topic: "b", readings: [{ tag: 1 }] },
    { topic: "c/{x}", readings: [] },
  ]);
});

test("without expectEvery no tag is watched", () => {
  expect(staleTagWatch(tags.slice(0, 1), 0)).toBeUndefined();
});
