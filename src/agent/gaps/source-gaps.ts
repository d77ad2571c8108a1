// The gaps of one source, reported by its pipeline, its mapping and its driver.

import type { AgentError } from "../../core/errors.ts";
import { reasonOf } from "../../core/errors.ts";
import type { TagGap } from "../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Captures, Delivery, Source, TagId } from "../../core/source.ts";
import { latestReadings } from "../../lib/readings/reading-batch.ts";
import type { GapRecord } from "./gap-record.ts";
import { GapResolution } from "./gap-resolution.ts";
import { type GapResolutions, gapResolutions } from "./gap-resolutions.ts";
import { isOutage } from "./gap-rows.ts";
import { type FailureCause, type TagFailures, tagFailures } from "./tag-failures.ts";

/** Longest time between a loss and its detection. A gap begins with the last value, but at most this much earlier. */
const noticedWithinUs = 60e6;
/** After a connection, a source delivers its first values and reports the missing ones within this time. */
const settledAfterMs = 15_000;
/** A disk that has not answered for this long counts as hung. */
const hungAfterMs = 5_000;
/** A step later than this after the first connection is not the initial setting of the clock. */
const settingMs = 600_000;

export interface GapsOf {
  readonly name: string;
  readonly tags: number;
  /** Set if several agents of a cluster can read the source. */
  readonly shared?: SharedRead | undefined;
}

export interface SharedRead {
  /** The agent that read the source before this one. Undefined: none did, or this one. */
  readonly former: { readonly node: string; readonly upTo: EpochMicros } | undefined;
}

export class SourceGaps implements Disposable {
  readonly #record: GapRecord;
  readonly #source: GapsOf;
  readonly #runtime: Runtime;
  readonly #failures: TagFailures;
  readonly #ticking: Disposable;
  #inputOf: (tag: TagId, captures: Captures, address?: string) => string | undefined = () => undefined;
  readonly #resolutions: GapResolutions;
  #outage: GapResolution | undefined;
  /** How old the newest value of the last delivery was at arrival. The device's clock may be behind by this much. */
  #behindUs = 0;
  #bufferRow: number | undefined;
  /** The gap record has been unwritable for so long that deliveries no longer wait for it. */
  #hung = false;
  #disposed = false;
  #storingSinceMs: number | undefined;
  #connection: Pick<Source, "holder" | "recovery"> | undefined;
  #connectedAtMs = 0;
  #settled = true;
  /** When the `agentDown` gap ended, on the monotonic clock. The wall clock may not have been set by then. */
  #backAt: { readonly gap: GapResolution; readonly ms: number } | undefined;
  /** Up to when everything was recorded, as far as known. */
  #lastReceived: EpochMicros;

  constructor(record: GapRecord, source: GapsOf, runtime: Runtime) {
    this.#record = record;
    this.#source = source;
    this.#runtime = runtime;
    this.#resolutions = gapResolutions(record, source.name);
    this.#failures = tagFailures(record, source.name, runtime.clock);
    this.#lastReceived = runtime.clock.now();
    this.#begin();
    record.life.runs(source.name);
    this.#ticking = record.eachSecond(() => this.#tick());
  }

  /** Sets how Input IDs are derived from tags. Called once, before the first delivery. */
  names(inputOf: (tag: TagId, captures: Captures, address?: string) => string | undefined): void {
    this.#inputOf = inputOf;
  }

  /** Up to when everything is recorded. */
  get accountedUpTo(): EpochMicros {
    const { row } = this.#outage ?? {};
    if (row?.to === undefined && row) return row.from;
    return this.#connection
      ? epochMicros(Math.max(this.#lastReceived, this.#runtime.clock.now() - noticedWithinUs))
      : this.#lastReceived;
  }

  online(connection: Pick<Source, "holder" | "recovery">): void {
    const { clock } = this.#runtime;
    const now = clock.now();
    this.#connection = connection;
    this.#connectedAtMs = clock.monotonic();
    this.#lastReceived = now;
    const { recovery } = connection;
    const outage = this.#outage;
    this.#outage = undefined;
    outage?.connected(now);
    if (outage?.row?.cause === "agentDown") this.#backAt = { gap: outage, ms: clock.monotonic() };
    if (recovery?.how === "kept") outage?.retained(recovery.by);
    else if (outage) this.#resolutions.add(outage);
    if (recovery?.how === "history") {
      this.#settled = false;
      return;
    }
    this.#resolutions.end(recovery ? undefined : "what happened meanwhile is kept nowhere");
    this.#settled = true;
  }

  /** Called after the readings are on disk. */
  delivered(delivery: Pick<Delivery, "readings" | "batches" | "gaps">): void {
    const { gaps = [] } = delivery;
    const now = this.#runtime.clock.now();
    this.#lastReceived = now;
    let newest = 0;
    for (const { time, historical } of latestReadings(delivery)) if (!historical && time > newest) newest = time;
    // Values measured after the newest one have not arrived yet.
    if (newest <= now && newest > now - noticedWithinUs) {
      this.#lastReceived = epochMicros(newest);
      this.#behindUs = now - newest;
    }
    for (const gap of gaps) this.#take(gap);
    if (gaps.length > 0) this.#resolutions.flush();
    this.#failures.flush();
  }

  /** True once reported losses are on disk. False if the disk rejects the write or hangs for 5 s. Never rejects. */
  async written(): Promise<boolean> {
    this.#resolutions.settle(this.#settled);
    const saving = this.#record.save();
    // `saving` waits for the hung write before it.
    if (this.#hung) return false;
    const waiting = new AbortController();
    const answered = await Promise.race([
      saving,
      this.#runtime.clock.sleep(hungAfterMs, waiting.signal).then(
        () => undefined,
        () => undefined,
      ),
    ]);
    waiting.abort();
    if (answered !== undefined) return answered;
    this.#hung = true;
    this.#runtime.log.warn({ part: "gaps", source: this.#source.name }, "the disk of the gap record does not answer");
    void saving.then(() => {
      this.#hung = false;
    });
    return false;
  }

  lost(error: unknown): void {
    const { clock } = this.#runtime;
    this.#connection = undefined;
    if (this.#outage) return;
    const from = epochMicros(Math.max(this.#lastReceived, clock.now() - noticedWithinUs));
    this.#outage = this.#open("disconnected", reasonOf(error), from);
  }

  /** Points are being appended to the buffer. */
  storing(): void {
    this.#storingSinceMs ??= this.#runtime.clock.monotonic();
  }

  /** Called with the error when points cannot be stored, and with undefined when they can again. */
  bufferFailed(error: AgentError | undefined): void {
    this.#storingSinceMs = undefined;
    // After disposal no other event would end the row.
    if (error && !this.#disposed) this.#bufferHeld(error.message);
    if (error || this.#bufferRow === undefined) return;
    const holder = this.#connection?.holder;
    const to = this.#runtime.clock.now();
    if (holder) this.#record.advance(this.#bufferRow, "retained", { to, outcome: `${holder} kept them` });
    else this.#record.advance(this.#bufferRow, "ends", { to });
    this.#bufferRow = undefined;
  }

  /** An input gives no usable value. `since`: when it last did; undefined: unknown, or never. */
  failed(input: string, since: EpochMicros | undefined, cause: FailureCause, reason: string): void {
    const from = Math.min(this.#runtime.clock.now(), Math.max(since ?? 0, this.#connectedSince()));
    this.#failures.failed(input, epochMicros(from), cause, reason);
  }

  recovered(input: string, time: EpochMicros): void {
    this.#failures.recovered(input, epochMicros(Math.min(time, this.#runtime.clock.now())));
  }

  /** The source stops. The next start continues the recovery of missing values. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#ticking[Symbol.dispose]();
    this.#resolutions.settle(false);
    this.#failures.end();
    if (this.#bufferRow !== undefined) this.#record.advance(this.#bufferRow, "ends", { to: this.#runtime.clock.now() });
    // The agent that reads the source next records the time from here on.
    if (this.#source.shared) this.#outage?.ended(this.#runtime.clock.now());
    this.#record.life.stopped(this.#source.name);
  }

  /** The source does not read while the buffer fails. */
  #bufferHeld(reason: string): void {
    const { name: source, tags } = this.#source;
    const row = { source, cause: "buffer", reason, from: this.#lastReceived, tags } as const;
    this.#bufferRow ??= this.#record.add("begins", { ...row, inputs: [] });
  }

  #connectedSince(): number {
    const { clock } = this.#runtime;
    return this.#connection ? clock.now() - (clock.monotonic() - this.#connectedAtMs) * 1_000 : this.#lastReceived;
  }

  /** Continues the rows that an earlier run left open, or opens a row for the time in between. */
  #begin(): void {
    const { name, shared } = this.#source;
    const rows = this.#record.of(name);
    for (const { id, state, cause } of rows)
      if (state === "filling") this.#resolutions.add(new GapResolution(this.#record, id));
      else if (state === "open" && isOutage({ cause })) this.#outage = new GapResolution(this.#record, id);
    const { former } = this.#record.life;
    if (shared?.former) {
      const { node, upTo } = shared.former;
      this.#outage?.ended(former?.time ?? upTo);
      const from = epochMicros(Math.min(upTo, this.#runtime.clock.now()));
      this.#outage = this.#open("takeover", `${node} read the source until then`, from);
      return;
    }
    const upTo = this.#record.life.accountedUpTo(name);
    if (upTo === undefined || this.#outage) return;
    if (shared && (former === undefined || upTo > former.time))
      this.#outage = this.#open("takeover", "no agent held the lease of the source", upTo);
    else if (former === undefined || upTo > former.time)
      this.#outage = this.#open("stopped", "the source was restarted with a changed configuration", upTo);
    else
      this.#outage = this.#open(
        "agentDown",
        former.stopped ? "the agent was stopped" : "the agent was killed, or the machine went down",
        upTo,
      );
  }

  #open(
    cause: "agentDown" | "disconnected" | "stopped" | "takeover",
    reason: string,
    from: EpochMicros,
  ): GapResolution {
    const { name: source, tags } = this.#source;
    const id = this.#record.add("begins", { source, cause, reason, from, tags, inputs: [] });
    return new GapResolution(this.#record, id);
  }

  #take(gap: TagGap): void {
    const input = this.#inputOf(gap.tag, gap.captures, gap.address);
    // Tags without an Input ID are not recorded, so they have no gaps.
    if (input !== undefined) this.#resolutions.take(input, gap, this.#behindUs);
  }

  #tick(): void {
    this.#failures.flush();
    const { clock } = this.#runtime;
    if (this.#backAt && clock.monotonic() - this.#backAt.ms > settingMs) this.#backAt = undefined;
    if (this.#backAt) this.#backAt.gap.notBefore(clock.now() - (clock.monotonic() - this.#backAt.ms) * 1_000);
    const storingMs = clock.monotonic() - (this.#storingSinceMs ?? Number.POSITIVE_INFINITY);
    if (storingMs >= hungAfterMs) this.#bufferHeld("the disk does not answer");
    if (this.#connection) this.#settled ||= clock.monotonic() - this.#connectedAtMs >= settledAfterMs;
    this.#resolutions.settle(this.#settled);
    this.#resolutions.forget();
  }
}
