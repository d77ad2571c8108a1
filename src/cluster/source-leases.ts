// Reads each source that several agents could read on exactly one of them: a lease for each source.
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
  /** Called when this agent has become the one that reads a source. */
  readonly start: (source: string) => void;
  /** Called when it no longer is. Resolves once the connection to the device is closed. */
  readonly stop: (source: string) => Promise<void>;
}

/** How often it is looked whether a source should be read elsewhere. */
const lookMs = 500;
/** How long a holder may take to close its connections once it knows that the lease is lost. */
const closingMs = 500;

/** Takes and gives back the lease of `source` until `signal` aborts, then stops it, gives the lease back and resolves. */
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
    // A former holder whose entry expired early learns of it when it renews.
    await wait(ttlMs / renewals + closingMs);
    if (!over.aborted) {
      start(source);
      while (!over.aborted && may(true)) await wait(lookMs);
      await stop(source);
    }
    // Only now: two connections to one device are never open at once.
    await term.release();
  }
}
