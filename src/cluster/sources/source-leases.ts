// Ensures with one lease per source that exactly one agent reads a source that several agents could read.
import { reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { type KeyBucket, keyToken } from "../connection/jetstream.ts";
import { acquireLease, type LeaseTerm } from "../leases/lease.ts";
import type { Membership } from "../members/membership.ts";
import { mayRead } from "../members/placement.ts";

export interface SourceLeasesOptions {
  readonly leases: KeyBucket;
  readonly node: string;
  readonly ttlMs: number;
  readonly view: Pick<Membership, "candidates" | "orders" | "isKnown">;
  /** Called when this agent is to read a source. May reject, for example with server errors: the lease is released. */
  readonly start: (source: string, term: LeaseTerm) => Promise<void>;
  /** Called after `start`. Resolves once the connection to the device is closed. Never rejects. */
  readonly stop: (source: string) => Promise<void>;
}

/** Key of the lease of a source; without `source` the prefix of all of them. */
export function sourceLease(source = ""): string {
  return `source.${keyToken(source)}`;
}

/** Interval of checking whether another agent should read the source. */
const lookMs = 500;
/** Maximum time for a holder to close its connections after it has noticed the loss of its lease. */
const closingMs = 500;

/** Acquires and releases the lease of `source` until `signal` aborts. Then stops the source and resolves. */
export async function holdSource(
  source: string,
  { leases, node, ttlMs, view, start, stop }: SourceLeasesOptions,
  runtime: Pick<Runtime, "clock" | "log">,
  signal: AbortSignal,
): Promise<void> {
  const may = (holds: boolean) => view.isKnown && mayRead(source, { node, holds }, view.candidates, view.orders);
  while (!signal.aborted) {
    const lease = { bucket: leases, key: sourceLease(source), node, ttlMs, ifMissing: "wait" } as const;
    const term = await acquireLease(lease, runtime, signal, () => may(false)).catch((error: unknown) => {
      if (!isAbort(error, signal)) throw error;
    });
    if (!term) return;
    const over = AbortSignal.any([signal, term.signal]);
    const wait = (ms: number) => runtime.clock.sleep(ms, over).catch(() => {});
    await wait(closingMs);
    if (!over.aborted) {
      try {
        await start(source, term);
        while (!over.aborted && may(true)) await wait(lookMs);
      } catch (error) {
        runtime.log.warn({ source, reason: reasonOf(error) }, "cannot take over the source");
      } finally {
        await stop(source);
      }
    }
    // Release only after the stop, so that two agents are never connected to the device at once.
    await term.release();
  }
}
