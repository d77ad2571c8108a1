// When a thread looks out for the next message, and when it leaves that.
import { expect, test } from "vitest";
import { LookOut, lookOutMs } from "../../../../src/buffer/disk/worker/thread-link.ts";

test("nobody looks out between messages that come now and then", () => {
  const lookOut = new LookOut();
  expect([0, lookOutMs / 2, lookOutMs, 1_000].map((waited) => lookOut.isWorth(waited))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("who looked out in vain leaves it for some messages, and then tries again", () => {
  const lookOut = new LookOut();
  lookOut.begin();
  expect(lookOut.goesOn(performance.now() - lookOutMs)).toBe(false);
  expect(Array.from({ length: 8 }, () => lookOut.isWorth(0))).not.toContain(true);
  expect(Array.from({ length: 600 }, () => lookOut.isWorth(0))).toContain(true);
});

test("where somebody else had the core meanwhile it is left for hundreds of messages", () => {
  const lookOut = new LookOut();
  lookOut.begin();
  const since = performance.now();
  while (performance.now() - since < 0.3);
  expect(lookOut.goesOn(since)).toBe(false);
  expect(Array.from({ length: 512 }, () => lookOut.isWorth(0))).not.toContain(true);
  expect(lookOut.isWorth(0)).toBe(true);
});
