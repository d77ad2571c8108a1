// The agents of a cluster share one rate: the service never sees two requests closer than the interval, whatever
// happens to agents, servers and clocks.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { KeyBucket } from "../../../src/cluster/connection/jetstream.ts";
import { acquireLease } from "../../../src/cluster/leases/lease.ts";
import { leaseGate } from "../../../src/cluster/leases/request-gates.ts";
import type { Clock } from "../../../src/core/runtime.ts";
import { Pacer } from "../../../src/upload/client/pacer.ts";
import { memoryBucket, unreachable } from "../../support/memory-bucket.ts";
import { runs } from "../../support/property.ts";
import { ManualClock, seeded, testRuntime } from "../../support/runtime.ts";

const intervalMs = 1_000;
const ttlMs = 6_000;
const methods = ["insert", "save"] as const;

/** Three agents deliver for `ms`. Returns, by method, when requests arrive at the service. */
async function deliver(seed: number, ms: number) {
  const clock = new ManualClock();
  const random = seeded(seed);
  const bucket = memoryBucket();
  const stop = new AbortController();
  const seen = new Map(methods.map((method) => [method, [] as number[]]));
  const freezes: (() => void)[] = [];
  let terms = 0;

  async function agent(node: string): Promise<void> {
    let frozenUntil = 0;
    const thaw = async () => {
      while (clock.monotonic() < frozenUntil) await clock.sleep(frozenUntil - clock.monotonic(), stop.signal);
    };
    /** A suspended process does nothing. When it resumes, all overdue timers fire at once. */
    const own: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      async sleep(given, signal) {
        await clock.sleep(given, signal);
        await thaw();
      },
    };
    const runtime = testRuntime({ clock: own });
    const freeze = () => {
      frozenUntil = clock.monotonic() + random() * 20_000;
    };
    freezes.push(freeze);
    const through = (write: () => Promise<unknown>) => async (): Promise<never> => {
      await thaw();
      const chance = random();
      await clock.sleep(1 + random() * 40, stop.signal);
      if (chance < 0.02) {
        // The packet arrives long after the caller's timeout.
        void clock.sleep(random() * 8_000, stop.signal).then(write, () => {});
        throw unreachable();
      }
      const result = chance < 0.04 ? undefined : await write();
      if (chance < 0.06) throw unreachable();
      await clock.sleep(1 + random() * (chance < 0.12 ? 1_500 : 20), stop.signal);
      await thaw();
      return result as never; // the bucket's result
    };
    const link: KeyBucket = {
      ...bucket,
      get: (...given) => through(() => bucket.get(...given))(),
      create: (...given) => through(() => bucket.create(...given))(),
      update: (...given) => through(() => bucket.update(...given))(),
    };
    while (!stop.signal.aborted) {
      const term = await acquireLease(
        { bucket: link, key: "delivery", node, ttlMs, ifMissing: "take" },
        runtime,
        stop.signal,
      );
      terms++;
      const gate = leaseGate(term, intervalMs, own);
      const transitMs = random() < 0.5 ? 5 : 450;
      const ending = AbortSignal.any([stop.signal, term.signal]);
      const sending = methods.map(async (method) => {
        const pacer = new Pacer(own, 1_000 / intervalMs, undefined, gate);
        while (!ending.aborted)
          await pacer.run(async (turn) => {
            // The time to connect, or a suspension of the process.
            if (random() < 0.1) await own.sleep(random() * 1_500, stop.signal);
            if (random() < 0.02) freeze();
            await thaw();
            if (!turn?.start()) return;
            await clock.sleep(transitMs, stop.signal);
            seen.get(method)?.push(clock.monotonic());
          }, ending);
      });
      await Promise.allSettled(sending);
      if (random() < 0.3) await term.release();
    }
  }

  const agents = ["a", "b", "c"].map((node) => agent(node).catch(() => {}));
  for (let passed = 0; passed < ms; passed += 1_000) {
    await clock.advance(1_000);
    // The clock of the server that leads the bucket is set forward, so the lease expires early.
    if (random() < 0.1) bucket.expire("delivery");
    for (const freeze of freezes) if (random() < 0.02) freeze();
  }
  stop.abort(new Error("the end"));
  await Promise.all(agents);
  return { seen, terms };
}

test("no two requests of one method reach the service within the interval", { timeout: 60_000 }, async () => {
  let requests = 0;
  let terms = 0;
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 31 - 1 }), async (seed) => {
      const run = await deliver(seed, 120_000);
      for (const [method, times] of run.seen) {
        const gaps = times.slice(1).map((time, i) => time - times[i]!);
        expect(Math.min(intervalMs, ...gaps), method).toBeGreaterThanOrEqual(intervalMs);
        requests += times.length;
      }
      terms += run.terms;
    }),
    runs(8),
  );
  expect(requests).toBeGreaterThan(100);
  expect(terms).toBeGreaterThan(12);
});
