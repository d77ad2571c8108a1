// A lease in a key-value bucket: at most one agent holds it. A conditional write acquires, renews and releases it.
//
//   agent A   acquire ── renew ── renew ──x (dies)
//   agent B   get: revision 7 ····· get: still 7 for leaseTtl ── update(7) = acquire
//
// Each agent measures with its own monotonic clock how long it has seen the same revision. Entries expire by the wall
// clocks of the servers, but this only makes another agent take the lease earlier or later.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import { isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { type KeyBucket, type KeyEntry, parsed } from "../connection/jetstream.ts";

export interface LeaseOptions {
  readonly bucket: KeyBucket;
  readonly key: string;
  /** `agent.name`, shown as the holder. */
  readonly node: string;
  readonly ttlMs: number;
  /**
   * For an entry that does not exist. `wait`: it is taken after `ttlMs`, because the servers may have lost the entry of a
   * holder that does not reach them. `take`: at once.
   */
  readonly ifMissing: "take" | "wait";
}

/** One uninterrupted period of holding a lease. */
export interface LeaseTerm {
  /** Revision of the entry at its acquisition. Later terms in the same bucket have higher ones. */
  readonly generation: number;
  /** Monotonic time of the acquisition, in milliseconds. */
  readonly since: number;
  /** Aborts once another agent holds the lease, or it was not renewed for `ttlMs`. */
  readonly signal: AbortSignal;
  /** False: the term is over. Unlike `signal`, correct as soon as a suspended process resumes. */
  readonly isHeld: boolean;
  /**
   * Renews the lease. Resolves with the monotonic time just before the request was sent, or undefined if the term is
   * over. Rejects with `CLUSTER_UNREACHABLE` if the outcome is unknown. Overlapping calls run one after the other.
   */
  renew(): Promise<number | undefined>;
  /** Ends the term and empties the entry, so that another agent need not wait for `ttlMs`. */
  release(): Promise<void>;
}

/** The holder of this lease delivers for the cluster. */
export const deliveryLease = "delivery";
/** Renewals per `ttlMs`, so that two may fail. */
const renewals = 3;
/** Reads of the entry per `ttlMs` while another agent holds it. */
const looks = 12;
const retryMs = 200;
/** Timeout of a renewal as a fraction of `ttlMs`: if the server died with the request, it is sent again. */
const answerShare = 1 / 6;
/** Value of an entry without a holder. */
const released = new Uint8Array();

/**
 * Waits for the lease and resolves with the term. Takes an entry that was released or not renewed for `ttlMs`.
 * Retries if the servers do not answer. Rejects with `signal.reason`. `mayTake`: false leaves it to others.
 */
export async function acquireLease(
  options: LeaseOptions,
  { clock, log }: Pick<Runtime, "clock" | "log">,
  signal: AbortSignal,
  mayTake: () => boolean = () => true,
): Promise<LeaseTerm> {
  const { bucket, key, node, ttlMs, ifMissing } = options;
  // Identifies this attempt's entry if the answer of the servers was lost.
  const token = randomUUID();
  const value = Buffer.from(JSON.stringify({ node, token }));
  let seen: { readonly revision: number | undefined; readonly since: number } | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const askedAt = clock.monotonic();
      const entry = await bucket.get(key);
      if (!seen || seen.revision !== entry?.revision) seen = { revision: entry?.revision, since: clock.monotonic() };
      const isOver = askedAt - seen.since >= ttlMs;
      const isFree = entry ? entry.value.length === 0 || holderOf(entry).token === token : ifMissing === "take";
      if ((isFree || isOver) && !signal.aborted && mayTake()) {
        const sentAt = clock.monotonic();
        const revision = entry ? await bucket.update(key, value, entry.revision) : await bucket.create(key, value);
        if (revision !== undefined) return termOf(options, { value, token, revision, sentAt }, { clock, log });
      }
    } catch (error) {
      if (!isAgentError(error)) throw error;
    }
    await clock.sleep(ttlMs / looks, signal);
  }
}

const holderRecord = z.object({ node: z.string(), token: z.string() });

/** The holder of an entry; none if the entry cannot be parsed. */
export function holderOf({ value }: KeyEntry): Partial<z.output<typeof holderRecord>> {
  return parsed(holderRecord, value) ?? {};
}

interface Acquired {
  readonly value: Uint8Array;
  readonly token: string;
  readonly revision: number;
  readonly sentAt: number;
}

/** The term that begins with this acquisition. Renews the lease until it is over. */
function termOf(
  { bucket, key, ttlMs }: LeaseOptions,
  { value, token, revision: generation, sentAt }: Acquired,
  { clock, log }: Pick<Runtime, "clock" | "log">,
): LeaseTerm {
  const since = clock.monotonic();
  const over = new AbortController();
  const { signal } = over;
  const notRenewed = `it could not be renewed for ${ttlMs} ms`;
  let revision = generation;
  let renewedAt = sentAt;
  let renewal: Promise<unknown> = Promise.resolve();

  async function renewNow(): Promise<number | undefined> {
    while (!signal.aborted) {
      const askedAt = clock.monotonic();
      const written = await bucket.update(key, value, revision, ttlMs * answerShare);
      if (written !== undefined) {
        revision = written;
        renewedAt = askedAt;
        return signal.aborted ? undefined : askedAt;
      }
      // The answer to an earlier renewal may have been lost: then the entry still has this term's token.
      const entry = await bucket.get(key);
      if (!entry || holderOf(entry).token !== token) {
        end(`${entry ? (holderOf(entry).node ?? "another agent") : "no agent"} has the lease now`);
        return undefined;
      }
      revision = entry.revision;
    }
    return undefined;
  }

  function renew(): Promise<number | undefined> {
    const result = renewal.then(renewNow);
    renewal = result.catch(() => {});
    return result;
  }

  async function keep(): Promise<void> {
    while (!signal.aborted) {
      const left = renewedAt + ttlMs - clock.monotonic();
      if (left <= 0) return end(notRenewed);
      const due = renewedAt + ttlMs / renewals - clock.monotonic();
      try {
        if (due > 0) await clock.sleep(due, signal);
        else await Promise.race([renew(), clock.sleep(left, signal)]);
      } catch {
        await clock.sleep(Math.min(retryMs, left), signal).catch(() => {});
      }
    }
  }

  function end(reason: string): void {
    if (signal.aborted) return;
    log.info({ lease: key, reason }, "the term of a lease is over");
    over.abort(new Error(`the lease ${key} is over: ${reason}`));
  }

  const running = keep();
  return {
    generation,
    since,
    signal,
    get isHeld() {
      if (clock.monotonic() >= renewedAt + ttlMs) end(notRenewed);
      return !signal.aborted;
    },
    renew,
    async release() {
      end("the lease is released");
      await running;
      await renewal;
      await bucket.update(key, released, revision).catch(() => {});
    },
  };
}
