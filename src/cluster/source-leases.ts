// Ensures with one lease per source that exactly one agent reads a source that several agents could read.
import type { Runtime } from "../core/runtime.ts";
import { isAbort } from "../lib/abort.ts";
import type { KeyBucket } from "./jetstream.ts";
import { keyToken } from "./key-token.ts";
import { acquireLease, renewals } from "./lease.ts";
import type { Membership } from "./membership.ts";
import { mayRead } from "./placement.ts";

export interface SourceLeasesOptions {
  readonly leases: KeyBucket;
  readonly node: string;
  readonly ttlMs: number;
  readonly view: Pick<Membership, "candidates" | "orders">;
  /** Called when this agent starts to read a source. */
  readonly start: (source: string) => void;
  /** Called when it no longer reads the source. Resolves once the connection to the device is closed. */
  readonly stop: (source: string) => Promise<void>;
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
  const may = (holds: boolean) => mayRead(source, { node, holds }, view.candidates, view.orders);
  while (!signal.aborted) {
    const lease = { bucket: leases, key: `source.${keyToken(source)}`, node, ttlMs };
    const term = await acquireLease(lease, runtime, signal, () => may(false)).catch((error: unknown) => {
      if (!isAbort(error, signal)) throw error;
    });
    if (!term) return;
    const over = AbortSignal.any([signal, term.signal]);
    const wait = (ms: number) => runtime.clock.sleep(ms, over).catch(() => {});
    // A former holder whose entry expired early notices this at its next renewal.
    await wait(ttlMs / renewals + closingMs);
    if (!over.aborted) {
      start(source);
      while (!over.aborted && may(true)) await wait(lookMs);
      await stop(source);
    }
    // Release only after the stop, so that two agents are never connected to the device at once.
    await term.release();
  }
}
