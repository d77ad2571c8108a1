// At most one agent holds a lease, and a takeover takes a bounded time, whatever servers and clocks do.
import { expect, test } from "vitest";
import { acquireLease, holderOf, type LeaseTerm } from "../../../src/cluster/leases/lease.ts";
import { memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const ttlMs = 6_000;
const never = new AbortController().signal;

function site() {
  const clock = new ManualClock();
  const bucket = memoryBucket();
  const runtime = testRuntime({ clock });
  const acquire = (node: string, through = bucket, signal = never) =>
    acquireLease({ bucket: through, key: "delivery", node, ttlMs, ifMissing: "take" }, runtime, signal);
  return { clock, bucket, acquire };
}

/** Advances time until the lease is acquired, or until `ms` have passed. */
async function within(clock: ManualClock, ms: number, term: Promise<LeaseTerm>): Promise<LeaseTerm | undefined> {
  let found: LeaseTerm | undefined;
  void term.then((one) => {
    found = one;
  });
  await clock.advance(ms);
  return found;
}

test("a second agent gets the lease when the first one releases it, and not before", async () => {
  const { clock, acquire, bucket } = site();
  const first = await acquire("a");
  const second = acquire("b");
  expect(await within(clock, 60_000, second)).toBeUndefined();
  expect(holderOf((await bucket.get("delivery"))!).node).toBe("a");
  await first.release();
  expect(first.signal.aborted).toBe(true);
  expect((await within(clock, 500, second))?.generation).toBeGreaterThan(first.generation);
});

test("an entry of the agent's own whose answer was lost is the agent's lease at once", async () => {
  const { clock, bucket, acquire } = site();
  let lost = 0;
  bucket.after = (call) => {
    if (call === "create" && lost++ === 0) throw unreachable();
  };
  expect(await within(clock, 1_000, acquire("a"))).toBeDefined();
  expect(lost).toBe(1);
});

test("a vanished holder is replaced within the lease's time to live plus one check", async () => {
  const { clock, bucket, acquire } = site();
  const first = await acquire("a", { ...bucket, update: () => new Promise(() => {}) });
  const second = acquire("b");
  expect(await within(clock, ttlMs - 1, second)).toBeUndefined();
  expect(await within(clock, ttlMs / 12 + 1, second)).toBeDefined();
  expect(first.signal.aborted).toBe(true);
});

test("a process that resumes after a suspension knows at once that its term is over", async () => {
  const { clock, bucket } = site();
  // The process is resumed, but its timers have not fired yet.
  let aheadMs = 0;
  const suspended = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + aheadMs,
    sleep: (ms: number, signal: AbortSignal) => clock.sleep(ms, signal),
  };
  const runtime = testRuntime({ clock: suspended });
  const term = await acquireLease({ bucket, key: "delivery", node: "a", ttlMs, ifMissing: "take" }, runtime, never);
  expect(term.isHeld).toBe(true);
  aheadMs = ttlMs;
  expect(term.isHeld).toBe(false);
  expect(term.signal.aborted).toBe(true);
});

test("a lost answer does not end a term while the entry is still the agent's own", async () => {
  const { clock, bucket, acquire } = site();
  const first = await acquire("a");
  let lost = 0;
  bucket.after = (call) => {
    if (call === "update" && lost++ === 0) throw unreachable();
  };
  await clock.advance(10 * ttlMs);
  expect(lost).toBeGreaterThan(10);
  expect(first.signal.aborted).toBe(false);
});

test("a term ends at the next renewal when its entry is gone or belongs to another agent", async () => {
  const { bucket, acquire } = site();
  const first = await acquire("a");
  bucket.expire("delivery");
  expect(await first.renew()).toBeUndefined();
  expect(first.signal.aborted).toBe(true);
  const second = await acquire("b");
  bucket.expire("delivery");
  const third = await acquire("c");
  expect(await second.renew()).toBeUndefined();
  expect(await third.renew()).toBe(0);
});

test("a holder that cannot renew ends its term by itself before its time to live is over for others", async () => {
  const { clock, bucket, acquire } = site();
  const first = await acquire("a");
  bucket.before = () => {
    throw unreachable();
  };
  await clock.advance(ttlMs);
  expect(first.signal.aborted).toBe(true);
});

test("an agent that is not allowed to hold the lease leaves it to others", async () => {
  const { clock, bucket } = site();
  const runtime = testRuntime({ clock });
  let isDraining = true;
  const term = acquireLease(
    { bucket, key: "delivery", node: "a", ttlMs, ifMissing: "take" },
    runtime,
    never,
    () => !isDraining,
  );
  expect(await within(clock, 10_000, term)).toBeUndefined();
  isDraining = false;
  expect(await within(clock, 1_000, term)).toBeDefined();
});

test("waiting for a lease ends with its abort signal", async () => {
  const { clock, acquire, bucket } = site();
  await acquire("a");
  const stop = new AbortController();
  const second = acquire("b", bucket, stop.signal);
  await clock.advance(1_000);
  stop.abort(new Error("enough"));
  await expect(second).rejects.toThrow("enough");
});
