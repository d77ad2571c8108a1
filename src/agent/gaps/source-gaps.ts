// The gaps of one source, reported by its pipeline, its mapping and its driver.
import { type AgentError, reasonOf } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Captures, Delivery, Source, TagGap, TagId } from "../../core/source.ts";
import { latestReadings } from "../../lib/readings/reading-batch.ts";
import { formatDuration } from "../../lib/time/duration.ts";
import { bufferHold, settledAfterMs } from "./buffer-hold.ts";
import type { Gap } from "./gap.ts";
import { type GapRecord, hungAfterMs, promptSave } from "./gap-record.ts";
import { type GapResolution, gapResolution, gapResolutions } from "./gap-resolution.ts";
import { isOutage } from "./gap-rows.ts";
import { type FailureCause, tagFailures } from "./tag-failures.ts";

/** Longest time between a loss and its detection. A gap begins with the last value, but at most this much earlier. */
const noticedWithinUs = 60e6;
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
  let disposed = false;
  let connectedAtMs = 0;
  /** Begin of the outage whose values were kept, and come with this connection. Undefined: none were kept. */
  let keptFrom: EpochMicros | undefined;
  /** Whether the driver has reported what values are missing since the last outage. */
  let settled = false;
  let outage: GapResolution | undefined;
  /** End of the last suspension during an outage, which ends with the first value after it. Undefined: there was none. */
  let resumedAt: EpochMicros | undefined;
  /** Begin of a suspension in which the lease of the source was lost. Undefined: there was none. */
  let leftAt: EpochMicros | undefined;
  /** The last suspension whose values the broker or server kept. They have come once the connection outlives it. */
  let kept: { readonly from: EpochMicros; readonly untilMs: number } | undefined;
  let connection: Connection | undefined;
  /** When the `agentDown` gap ended, on the monotonic clock. The wall clock may not have been set by then. */
  let backAt: { readonly gap: GapResolution; readonly ms: number } | undefined;
  const saved = promptSave(record, source, runtime);
  const hold = bufferHold(record, { source, tags, lastReceived: () => lastReceived }, runtime.clock);
  const resolutions = gapResolutions(record, source);
  const failures = tagFailures({ record, source, inputOf: inputOfPlace, endOutage: endByReadings }, runtime.clock);
  /** Up to when everything was recorded, as far as known. */
  let lastReceived: EpochMicros = runtime.clock.now();
  /** When the process last showed that it runs, in monotonic milliseconds. */
  let ranMs = runtime.clock.monotonic();
  begin();
  record.life.runs(source, accountedUpTo);
  const ticking = record.eachSecond(tick);

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
    if (former !== undefined && upTo <= former.time) {
      const reason = former.stopped ? "the agent was stopped" : "the agent was killed, or the machine went down";
      outage = open("agentDown", reason, upTo);
    } else if (shared) outage = open("takeover", "no agent held the lease of the source", upTo);
    else outage = open("stopped", "the source was restarted with a changed configuration", upTo);
  }

  /** Notices that the process was suspended. Call it before `lastReceived` or `connection` changes. */
  function runs(): void {
    const { clock } = runtime;
    const silentMs = clock.monotonic() - ranMs;
    ranMs += silentMs;
    if (silentMs < hungAfterMs) return;
    failures.endFirsts();
    hold.suspended(silentMs);
    const to = clock.now();
    if (outage) resumedAt = to;
    if (!connection || outage || hold.isOpen) return;
    const from = epochMicros(Math.max(lastReceived, to - silentMs * 1_000));
    // The next reader has a row for this time: another agent, or this one if no other has read.
    if (shared?.isHeld() === false) leftAt ??= from;
    if (leftAt !== undefined) return;
    if (connection.retainedBy !== undefined) {
      kept = { from: recordedUpTo(silentMs), untilMs: ranMs + noticedWithinUs / 1_000 };
      return;
    }
    const reason = `the agent was suspended for ${formatDuration(1_000 * Math.round(silentMs / 1_000))}`;
    record.add("ends", { source, cause: "agentDown", reason, from, to, tags, inputs: [] });
    lastReceived = to;
  }

  function open(cause: Gap["cause"], reason: string, from: EpochMicros): GapResolution {
    return gapResolution(record, record.add("begins", { source, cause, reason, from, tags, inputs: [] }));
  }

  /** Since when kept values may still come, at present or some time ago. Undefined: they have come. */
  function keptSince(agoMs = 0): EpochMicros | undefined {
    const ofSuspension = kept && runtime.clock.monotonic() - agoMs < kept.untilMs ? kept.from : undefined;
    return [ofSuspension, hold.waitsSince].filter((each) => each !== undefined).sort((a, b) => a - b)[0];
  }

  /** Up to when everything is recorded if the connection, with all that the device keeps, is lost now or was then. */
  function recordedUpTo(agoMs = 0): EpochMicros {
    const upTo = Math.max(lastReceived, runtime.clock.now() - agoMs * 1_000 - noticedWithinUs);
    return epochMicros(Math.min(upTo, keptSince(agoMs) ?? upTo));
  }

  /** Up to when everything is recorded. Values that are read, but not on disk yet, would be lost with the process. */
  function accountedUpTo(): EpochMicros {
    // A heartbeat may be due before the first tick after a suspension.
    runs();
    if (leftAt !== undefined) return leftAt;
    const { row } = outage ?? {};
    if (row?.to === undefined && row) return row.from;
    return connection ? recordedUpTo() : lastReceived;
  }

  function inputOfPlace({ tag, captures, address }: Pick<TagGap, "tag" | "captures" | "address">): string | undefined {
    return inputOf(tag, captures, address);
  }

  function take(gap: TagGap): void {
    const input = inputOfPlace(gap);
    // Tags without an Input ID are not recorded, so they have no gaps.
    if (input !== undefined) resolutions.take(input, gap, behindUs, runtime.clock.now());
  }

  function tick(): void {
    runs();
    failures.tick();
    const { clock } = runtime;
    if (backAt && clock.monotonic() - backAt.ms > settingMs) backAt = undefined;
    if (backAt) backAt.gap.notBefore(clock.now() - (clock.monotonic() - backAt.ms) * 1_000);
    hold.check();
    if (connection) settled ||= clock.monotonic() - connectedAtMs >= settledAfterMs;
    resolutions.settle(settled);
    resolutions.forget();
  }

  /** Ends an outage of a polled source. Tags without a reading have no row from the returned time on. */
  function endByReadings(to: EpochMicros): EpochMicros {
    if (!outage || !connection) return epochMicros(connectedSince());
    endOutage(connection, to);
    return to;
  }

  /** The values come again: `to` is the time of the connection or, if the source is polled, of the first readings. */
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
      const { polled = [] } = connected;
      if (!outage || polled.length === 0) endOutage(connected, lastReceived);
      failures.begin(polled.flatMap((place) => inputOfPlace(place) ?? []));
    },
    /** Called after the readings are on disk. */
    delivered(delivery: Pick<Delivery, "readings" | "batches" | "gaps">): void {
      runs();
      const { gaps = [] } = delivery;
      const now = runtime.clock.now();
      lastReceived = now;
      let newest = 0;
      for (const { time, historical } of latestReadings(delivery)) if (!historical) newest = Math.max(newest, time);
      // A value that was read before a suspension of the process is on disk only after it.
      if (connection && (outage || failures.awaitReadings))
        failures.take(delivery.readings, (time) => epochMicros(Math.min(now, Math.max(time, resumedAt ?? time))));
      // Values measured after the newest one have not arrived yet. What was polled may have waited for the disk for long.
      const earliest = connection?.polled?.length ? 0 : now - noticedWithinUs;
      if (newest <= now && newest > earliest) {
        lastReceived = epochMicros(newest);
        behindUs = now - newest;
      }
      for (const gap of gaps) take(gap);
      if (gaps.length > 0) resolutions.flush();
      failures.flush();
    },
    /** True once reported losses are on disk. False if the disk rejects the write or hangs for 5 s. Never rejects. */
    written(): Promise<boolean> {
      resolutions.settle(settled);
      return saved();
    },
    lost(error: unknown): void {
      // After a suspension the driver may notice the loss before the next tick.
      runs();
      const upTo = recordedUpTo();
      failures.lost();
      connection = undefined;
      settled = false;
      const undecided = hold.lost();
      if (undecided !== undefined) resolutions.add(gapResolution(record, undecided));
      if (outage || leftAt !== undefined) return;
      outage = open("disconnected", reasonOf(error), upTo);
      kept = undefined;
    },
    /** Points are being appended to the buffer. */
    storing(): void {
      hold.storing();
    },
    /** Called with the error when points cannot be stored, and with undefined when they can again. */
    bufferFailed(error: AgentError | undefined): void {
      if (!error) hold.stored(connection);
      // After disposal no other event would end the row.
      else if (!disposed) hold.failed(error);
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
      failures.lost();
      disposed = true;
      ticking[Symbol.dispose]();
      resolutions.settle(false);
      failures.end();
      hold.end(connection);
      // The agent that reads the source next records the time from here on.
      if (shared) outage?.ended(runtime.clock.now());
      record.life.stopped(source, leftAt ?? keptSince() ?? runtime.clock.now());
    },
  };
}
