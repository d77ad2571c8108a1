import { expect, test } from "vitest";
import { NoteLimiter } from "../../../../src/buffer/disk/worker/note-limiter.ts";

test("a message is written once in ten seconds, with how often it came and all its points", () => {
  const limiter = new NoteLimiter();
  const dropped = (points: number) => ({ level: "error", fields: { points }, message: "dropped" }) as const;
  const failed = { level: "warn", fields: {}, message: "failed" } as const;

  expect(limiter.admit(dropped(5), 0)).toEqual(dropped(5));
  expect(limiter.admit(dropped(6), 9_000)).toBeUndefined();
  expect(limiter.admit(failed, 9_000)).toEqual(failed);
  expect(limiter.admit(dropped(7), 9_999)).toBeUndefined();
  expect(limiter.admit(dropped(1), 10_001)?.fields).toEqual({ points: 14, repeats: 2 });
  expect(limiter.admit(dropped(2), 30_000)).toEqual(dropped(2));
});
