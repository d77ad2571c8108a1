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
        if (revision !== undefined) return new Term(options, { value, token, revision, sentAt }, { clock, log });
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

class Term implements LeaseTerm {
  readonly generation: number;
  readonly since: number;
  readonly #options: LeaseOptions;
  readonly #acquired: Acquired;
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  readonly #over = new AbortController();
  readonly #running: Promise<void>;
  #revision: number;
  #renewedAt: number;
  #renewal: Promise<unknown> = Promise.resolve();

  constructor(options: LeaseOptions, acquired: Acquired, runtime: Pick<Runtime, "clock" | "log">) {
    this.generation = acquired.revision;
    this.since = runtime.clock.monotonic();
    this.#options = options;
    this.#acquired = acquired;
    this.#runtime = runtime;
    this.#revision = acquired.revision;
    this.#renewedAt = acquired.sentAt;
    this.#running = this.#keep();
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  get isHeld(): boolean {
    const { ttlMs } = this.#options;
    if (this.#runtime.clock.monotonic() >= this.#renewedAt + ttlMs) this.#end(notRenewed(ttlMs));
    return !this.signal.aborted;
  }

  renew(): Promise<number | undefined> {
    const renewal = this.#renewal.then(() => this.#renew());
    this.#renewal = renewal.catch(() => {});
    return renewal;
  }

  async release(): Promise<void> {
    this.#end("the lease is released");
    await this.#running;
    await this.#renewal;
    await this.#options.bucket.update(this.#options.key, released, this.#revision).catch(() => {});
  }

  async #renew(): Promise<number | undefined> {
    const { bucket, key, ttlMs } = this.#options;
    const { clock } = this.#runtime;
    while (!this.signal.aborted) {
      const sentAt = clock.monotonic();
      const revision = await bucket.update(key, this.#acquired.value, this.#revision, ttlMs * answerShare);
      if (revision !== undefined) {
        this.#revision = revision;
        this.#renewedAt = sentAt;
        return this.signal.aborted ? undefined : sentAt;
      }
      // The answer to an earlier renewal may have been lost: then the entry still has this term's token.
      const entry = await bucket.get(key);
      if (!entry || holderOf(entry).token !== this.#acquired.token) {
        this.#end(`${entry ? (holderOf(entry).node ?? "another agent") : "no agent"} has the lease now`);
        return undefined;
      }
      this.#revision = entry.revision;
    }
    return undefined;
  }

  async #keep(): Promise<void> {
    const { clock } = this.#runtime;
    const { ttlMs } = this.#options;
    while (!this.signal.aborted) {
      const left = this.#renewedAt + ttlMs - clock.monotonic();
      if (left <= 0) return this.#end(notRenewed(ttlMs));
      const due = this.#renewedAt + ttlMs / renewals - clock.monotonic();
      try {
        if (due > 0) await clock.sleep(due, this.signal);
        else await Promise.race([this.renew(), clock.sleep(left, this.signal)]);
      } catch {
        await clock.sleep(Math.min(retryMs, left), this.signal).catch(() => {});
      }
    }
  }

  #end(reason: string): void {
    if (this.signal.aborted) return;
    this.#runtime.log.info({ lease: this.#options.key, reason }, "the term of a lease is over");
    this.#over.abort(new Error(`the lease ${this.#options.key} is over: ${reason}`));
  }
}

function notRenewed(ttlMs: number): string {
  return `it could not be renewed for ${ttlMs} ms`;
}
