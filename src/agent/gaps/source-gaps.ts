// The gaps of one source, reported by its pipeline, its mapping and its driver.
import { type AgentError, reasonOf } from "../../core/errors.ts";
import type { TagGap } from "../../core/gap.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Captures, Delivery, Source, TagId } from "../../core/source.ts";
import { latestReadings } from "../../lib/readings/reading-batch.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import type { GapRecord } from "./gap-record.ts";
import { type GapResolution, gapResolution, gapResolutions } from "./gap-resolution.ts";
import { isOutage } from "./gap-rows.ts";
import { type FailureCause, tagFailures } from "./tag-failures.ts";

/** Longest time between a loss and its detection. A gap begins with the last value, but at most this much earlier. */
const noticedWithinUs = 60e6;
/** After a connection, a source delivers its first values and reports the missing ones within this time. */
const settledAfterMs = 15_000;
/** A disk that has not answered for this long counts as hung, and a process that has not run as suspended. */
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
  /** Whether this agent may still read the source. After a suspension another one may read it. */
  readonly isHeld: () => boolean;
  /** The agent that read the source before this one. Undefined: none did, or this one. */
  readonly former: { readonly node: string; readonly upTo: EpochMicros } | undefined;
}

type Connection = Pick<Source, "retainedBy" | "recovery" | "polled">;

export type SourceGaps = ReturnType<typeof sourceGaps>;

export function sourceGaps(record: GapRecord, { name: source, tags, shared }: GapsOf, runtime: Runtime) {
  let inputOf: (tag: TagId, captures: Captures, address?: string) => string | undefined = () => undefined;
  /** How old the newest value of the last delivery was at arrival. The device's clock may be behind by this much. */
  let behindUs = 0;
  /** The gap record has been unwritable for so long that deliveries no longer wait for it. */
  let hung = false;
  let disposed = false;
  let connectedAtMs = 0;
  /** Begin of the outage whose values were kept, and come with this connection. Undefined: none were kept. */
  let keptFrom: EpochMicros | undefined;
  let settled = true;
  let outage: GapResolution | undefined;
  /** End of the last suspension during an outage, which ends with the first value after it. Undefined: there was none. */
  let resumedAt: EpochMicros | undefined;
  let bufferRow: number | undefined;
  let storingSinceMs: number | undefined;
  /** Begin of a suspension in which the lease of the source was lost. Undefined: there was none. */
  let leftAt: EpochMicros | undefined;
  let connection: Connection | undefined;
  /** When the `agentDown` gap ended, on the monotonic clock. The wall clock may not have been set by then. */
  let backAt: { readonly gap: GapResolution; readonly ms: number } | undefined;
  const resolutions = gapResolutions(record, source);
  const failures = tagFailures(record, source, runtime.clock);
  /** Up to when everything was recorded, as far as known. */
  let lastReceived: EpochMicros = runtime.clock.now();
  /** When the process last showed that it runs, in monotonic milliseconds. */
  let ranMs = runtime.clock.monotonic();
  begin();
  record.life.runs(source, accountedUpTo);
  const ticking = record.eachSecond(tick);

  /** The source does not read while the buffer fails. */
  function bufferHeld(reason: string): void {
    const row = { source, cause: "buffer", reason, from: lastReceived, tags } as const;
    bufferRow ??= record.add("begins", { ...row, inputs: [] });
  }

  function connectedSince(): number {
    const { clock } = runtime;
    return connection ? clock.now() - (clock.monotonic() - connectedAtMs) * 1_000 : lastReceived;
  }

  /** Continues the rows that an earlier run left open, or opens a row for the time in between. */
  function begin(): void {
    for (const { id, state, cause } of record.of(source))
      if (state === "filling") resolutions.add(gapResolution(record, id));
      else if (state === "open" && isOutage({ cause })) outage = gapResolution(record, id);
    const { former } = record.life;
    if (shared?.former) {
      const { node, upTo } = shared.former;
      outage?.ended(former?.time ?? upTo);
      const from = epochMicros(Math.min(upTo, runtime.clock.now()));
      outage = open("takeover", `${node} read the source until then`, from);
      return;
    }
    const upTo = record.life.accountedUpTo(source);
    if (upTo === undefined || outage) return;
    if (shared && (former === undefined || upTo > former.time))
      outage = open("takeover", "no agent held the lease of the source", upTo);
    else if (former === undefined || upTo > former.time)
      outage = open("stopped", "the source was restarted with a changed configuration", upTo);
    else
      outage = open(
        "agentDown",
        former.stopped ? "the agent was stopped" : "the agent was killed, or the machine went down",
        upTo,
      );
  }

  /** Notices that the process was suspended. Call it before `lastReceived` or `connection` changes. */
  function runs(): void {
    const { clock } = runtime;
    const silentMs = clock.monotonic() - ranMs;
    ranMs += silentMs;
    if (silentMs < hungAfterMs) return;
    if (storingSinceMs !== undefined) storingSinceMs += silentMs;
    const to = clock.now();
    if (outage) resumedAt = to;
    if (!connection || outage || bufferRow !== undefined) return;
    const from = epochMicros(Math.max(lastReceived, to - silentMs * 1_000));
    // The next reader has a row for this time: another agent, or this one if no other has read.
    if (shared?.isHeld() === false) leftAt ??= from;
    if (leftAt !== undefined || connection.retainedBy !== undefined) return;
    const reason = `the agent was suspended for ${formatDuration(1_000 * Math.round(silentMs / 1_000))}`;
    record.add("ends", { source, cause: "agentDown", reason, from, to, tags, inputs: [] });
    lastReceived = to;
  }

  function open(
    cause: "agentDown" | "disconnected" | "stopped" | "takeover",
    reason: string,
    from: EpochMicros,
  ): GapResolution {
    const id = record.add("begins", { source, cause, reason, from, tags, inputs: [] });
    return gapResolution(record, id);
  }

  /** Up to when everything is recorded. Values that are read, but not on disk yet, would be lost with the process. */
  function accountedUpTo(): EpochMicros {
    if (leftAt !== undefined) return leftAt;
    const { row } = outage ?? {};
    if (row?.to === undefined && row) return row.from;
    return connection ? epochMicros(Math.max(lastReceived, runtime.clock.now() - noticedWithinUs)) : lastReceived;
  }

  function take(gap: TagGap): void {
    const input = inputOf(gap.tag, gap.captures, gap.address);
    // Tags without an Input ID are not recorded, so they have no gaps.
    if (input !== undefined) resolutions.take(input, gap, behindUs);
  }

  function tick(): void {
    runs();
    failures.flush();
    const { clock } = runtime;
    if (backAt && clock.monotonic() - backAt.ms > settingMs) backAt = undefined;
    if (backAt) backAt.gap.notBefore(clock.now() - (clock.monotonic() - backAt.ms) * 1_000);
    const storingMs = clock.monotonic() - (storingSinceMs ?? Number.POSITIVE_INFINITY);
    if (storingMs >= hungAfterMs) bufferHeld("the disk does not answer");
    if (connection) settled ||= clock.monotonic() - connectedAtMs >= settledAfterMs;
    resolutions.settle(settled);
    resolutions.forget();
  }

  /** The values come again: `to` is the time of the connection or, if the source is polled, of the first value. */
  function endOutage({ recovery }: Connection, to: EpochMicros): void {
    const { clock } = runtime;
    const ended = outage;
    outage = undefined;
    resumedAt = undefined;
    keptFrom = recovery?.how === "kept" ? ended?.row?.from : undefined;
    ended?.connected(to);
    if (ended?.row?.cause === "agentDown") backAt = { gap: ended, ms: clock.monotonic() - (clock.now() - to) / 1_000 };
    if (recovery?.how === "kept") ended?.retained(recovery.by);
    else if (ended) resolutions.add(ended);
    if (recovery?.how === "history") {
      settled = false;
      return;
    }
    resolutions.end(recovery ? undefined : "what happened meanwhile is kept nowhere");
    settled = true;
  }

  return {
    /** Sets how Input IDs are derived from tags. Called once, before the first delivery. */
    names(derive: typeof inputOf): void {
      inputOf = derive;
    },
    get accountedUpTo(): EpochMicros {
      return accountedUpTo();
    },
    online(connected: Connection): void {
      connection = connected;
      connectedAtMs = runtime.clock.monotonic();
      lastReceived = runtime.clock.now();
      if (!outage || !connected.polled) endOutage(connected, lastReceived);
    },
    /** Called after the readings are on disk. */
    delivered(delivery: Pick<Delivery, "readings" | "batches" | "gaps">): void {
      runs();
      const { gaps = [] } = delivery;
      const now = runtime.clock.now();
      lastReceived = now;
      let newest = 0;
      let first: number = now;
      for (const { time, historical } of latestReadings(delivery)) {
        if (historical) continue;
        newest = Math.max(newest, time);
        first = Math.min(first, time);
      }
      // A value that was read before a suspension of the process is on disk only after it.
      if (connection && outage) endOutage(connection, epochMicros(Math.min(now, Math.max(first, resumedAt ?? first))));
      // Values measured after the newest one have not arrived yet.
      if (newest <= now && newest > now - noticedWithinUs) {
        lastReceived = epochMicros(newest);
        behindUs = now - newest;
      }
      for (const gap of gaps) take(gap);
      if (gaps.length > 0) resolutions.flush();
      failures.flush();
    },
    /** True once reported losses are on disk. False if the disk rejects the write or hangs for 5 s. Never rejects. */
    async written(): Promise<boolean> {
      resolutions.settle(settled);
      const saving = record.save();
      // `saving` waits for the hung write before it.
      if (hung) return false;
      const waiting = new AbortController();
      const answered = await Promise.race([
        saving,
        runtime.clock.sleep(hungAfterMs, waiting.signal).then(
          () => undefined,
          () => undefined,
        ),
      ]);
      waiting.abort();
      if (answered !== undefined) return answered;
      hung = true;
      runtime.log.warn({ part: "gaps", source }, "the disk of the gap record does not answer");
      void saving.then(() => {
        hung = false;
      });
      return false;
    },
    lost(error: unknown): void {
      const { clock } = runtime;
      // After a suspension the driver may notice the loss before the next tick.
      runs();
      connection = undefined;
      if (outage || leftAt !== undefined) return;
      const from = epochMicros(Math.max(lastReceived, clock.now() - noticedWithinUs));
      outage = open("disconnected", reasonOf(error), from);
    },
    /** Points are being appended to the buffer. */
    storing(): void {
      storingSinceMs ??= runtime.clock.monotonic();
    },
    /** Called with the error when points cannot be stored, and with undefined when they can again. */
    bufferFailed(error: AgentError | undefined): void {
      storingSinceMs = undefined;
      // After disposal no other event would end the row.
      if (error && !disposed) bufferHeld(error.message);
      if (error || bufferRow === undefined) return;
      const retainedBy = connection?.retainedBy;
      const to = runtime.clock.now();
      if (retainedBy) record.advance(bufferRow, "retained", { to, outcome: `${retainedBy} kept them` });
      else record.advance(bufferRow, "ends", { to });
      bufferRow = undefined;
    },
    /** An input gives no usable value. `since`: when it last did; undefined: unknown, or never. */
    failed(input: string, since: EpochMicros | undefined, cause: FailureCause, reason: string): void {
      const earliest = (since !== undefined && connection && keptFrom) || connectedSince();
      const from = Math.min(runtime.clock.now(), Math.max(since ?? 0, earliest));
      failures.failed(input, epochMicros(from), cause, reason);
    },
    recovered(input: string, time: EpochMicros): void {
      failures.recovered(input, epochMicros(Math.min(time, runtime.clock.now())));
    },
    /** The source stops. The next start continues the recovery of missing values. */
    [Symbol.dispose](): void {
      // A suspension may end with the lease of the source, before the next tick.
      runs();
      disposed = true;
      ticking[Symbol.dispose]();
      resolutions.settle(false);
      failures.end();
      if (bufferRow !== undefined) record.advance(bufferRow, "ends", { to: runtime.clock.now() });
      // The agent that reads the source next records the time from here on.
      if (shared) outage?.ended(runtime.clock.now());
      record.life.stopped(source, leftAt ?? runtime.clock.now());
    },
  };
}
