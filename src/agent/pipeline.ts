// Carries data from one source to the disk: open, read, map, append, acknowledge, reopen after a loss.
import type { AppendOptions, PointBuffer } from "../core/buffer.ts";
import { type AgentError, isAgentError } from "../core/errors.ts";
import type { Point, PointBatch } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Delivery, Source } from "../core/source.ts";
import { isAbort } from "../lib/flow/abort.ts";
import { BackOff } from "../lib/flow/repeat.ts";
import { readingCount } from "../lib/readings/reading-batch.ts";
import type { Mapping } from "../mapping/mapping.ts";
import type { ClockHold } from "./clock/clock-hold.ts";
import type { SourceGaps } from "./gaps/source-gaps.ts";
import type { SourceMonitor } from "./status/source-monitor.ts";

const polled: AppendOptions = { awaited: false };
/** Most deliveries that wait for the gap record. */
const mostPendingAcks = 100;

interface PipelineParts {
  readonly open: (runtime: Runtime, signal: AbortSignal) => Promise<Source>;
  readonly mapping: Mapping;
  readonly buffer: PointBuffer;
  readonly monitor: SourceMonitor;
  readonly gaps?: Pick<SourceGaps, "online" | "delivered" | "written" | "lost" | "storing" | "bufferFailed">;
  /** Holds deliveries while the machine's clock is not trusted. Undefined: no hold. */
  readonly hold?: Pick<ClockHold, "timed" | "close">;
  /** False: another agent of the cluster may read the source now. Undefined: no other agent can. */
  readonly isHeld?: (() => boolean) | undefined;
  /** See `Driver.unreachablePauseMs`. */
  readonly unreachablePauseMs?: number | undefined;
}

/** Runs until `signal` aborts, reopening a lost source with back-off. What was read is still stored after the abort. */
export async function runPipeline(parts: PipelineParts, runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { mapping, buffer, monitor, gaps, hold, isHeld = () => true } = parts;
  const { clock, log, random } = runtime;
  const backOff = new BackOff({ minMs: 1_000, maxMs: 30_000, random });
  const pauseOfTakeover = takeoverPause(random);
  /** Stores values held by `minInterval` when they are due. Undefined: there are none. */
  let releasing: Promise<void> | undefined;

  /** Runs one connection. Resolves with the reason of its loss, or undefined if `signal` ended it. */
  async function readUntilLost(): Promise<unknown> {
    const pendingAcks: Delivery[] = [];
    try {
      if (!isHeld()) return undefined;
      monitor.connecting();
      await using source = await parts.open(runtime, signal);
      monitor.online(source);
      gaps?.online(source);
      mapping.reconnected();
      mapping.claim(source.addresses ?? []);
      const deliveries = source.deliveries(signal);
      for await (const delivery of hold?.timed(deliveries, signal) ?? deliveries) {
        // After a suspension, another agent has received what waits here, or the next delivery of the device.
        if (!isHeld()) return undefined;
        backOff.reset();
        const { batches } = delivery;
        const points = batches ? mapping.mapBatches(delivery, batches) : mapping.map(delivery);
        if (mapping.nextDue !== undefined) releasing ??= release();
        monitor.delivered(readingCount(delivery), points.length);
        if (!(await store(points, delivery))) continue;
        gaps?.delivered(delivery);
        if ((await isRecorded(delivery, pendingAcks)) && isHeld()) delivery.ack();
      }
      return signal.aborted ? undefined : new Error("the source ended without a reason");
    } catch (error) {
      return isAbort(error, signal) || !isHeld() ? undefined : error;
    }
  }

  /**
   * Whether the delivery may be acknowledged: its losses must be in the gap record. Otherwise it waits in `pendingAcks`.
   */
  async function isRecorded(delivery: Delivery, pendingAcks: Delivery[]): Promise<boolean> {
    const reportsLoss = delivery.gaps?.some(({ state }) => state === "lost") ?? false;
    if (!gaps || (!reportsLoss && pendingAcks.length === 0)) return true;
    if (await gaps.written()) {
      for (const each of pendingAcks.splice(0)) each.ack();
      return true;
    }
    // If this delivery is never acknowledged, the driver reports the loss again on the next connection.
    if (reportsLoss && pendingAcks.push(delivery) > mostPendingAcks) pendingAcks.shift();
    return !reportsLoss;
  }

  /**
   * True once all `points` are on disk. Retries on disk errors, while the source is not read (back-pressure). False:
   * `signal` aborted the wait, so the delivery is not acknowledged.
   */
  async function store(points: readonly Point[] | PointBatch, { awaited, hurry }: AppendOptions): Promise<boolean> {
    if (points.length === 0) return true;
    const retry = new BackOff({ minMs: 250, maxMs: 2_000, random });
    for (;;) {
      try {
        gaps?.storing();
        // Not `signal`: readings already read are still stored when the agent stops, which takes one sync.
        await buffer.append(points, { awaited, hurry }, new AbortController().signal);
        monitor.bufferFailed(undefined);
        gaps?.bufferFailed(undefined);
        return true;
      } catch (error) {
        if (!isAgentError(error, "BUFFER_UNAVAILABLE")) throw error;
        monitor.bufferFailed(error satisfies AgentError);
        gaps?.bufferFailed(error);
        if (signal.aborted) return false;
        await sleep(retry.next());
      }
    }
  }

  async function release(): Promise<void> {
    for (let due = mapping.nextDue; due !== undefined && !signal.aborted; due = mapping.nextDue) {
      await sleep(Math.min(longestHold, Math.max(shortestHold, due - clock.monotonic())));
      if (signal.aborted) break;
      try {
        await store(mapping.due(), polled);
      } catch (error) {
        // Only a defect of the agent leads here; it must not stop the source.
        log.error({ err: error }, "held points could not be stored");
      }
    }
    // The next delivery that leaves held points starts a new release.
    releasing = undefined;
  }

  /** Ends early if `signal` aborts. */
  async function sleep(ms: number): Promise<void> {
    await clock.sleep(ms, signal).catch((error: unknown) => {
      if (!isAbort(error, signal)) throw error;
    });
  }

  while (!signal.aborted) {
    const error = await readUntilLost();
    if (error === undefined) break;
    const mostMs = isAgentError(error, "SOURCE_UNREACHABLE") ? parts.unreachablePauseMs : undefined;
    const waitMs = isAgentError(error, "SOURCE_TAKEN_OVER")
      ? pauseOfTakeover(clock.monotonic())
      : Math.min(backOff.next(), mostMs ?? Number.POSITIVE_INFINITY);
    monitor.lost(error, waitMs);
    gaps?.lost(error);
    await sleep(waitMs);
  }
  hold?.close();
  await releasing;
  await store(mapping.flush(), polled);
  monitor.stopped();
}

/** Bounds of the wait for held points, in milliseconds. A point due earlier is at most `longestHold` late. */
const longestHold = 250;
const shortestHold = 10;

// How long to wait after another client took over a session. Two clients that both reconnect at once take the session
// from each other several times a second, and neither receives much. The pause therefore grows with each takeover, even
// if messages arrive between them:
//
//   pause     10 s   30 s   60 s   60 s ...   plus up to a fifth, so that two agents do not move in step
//
// If the other client reconnects at once, each pause sees two takeovers: less than one in 10 s after the first pause.

const firstMs = 10_000;
const growth = 3;
const longestMs = 60_000;
/** After this time without a takeover the session is ours again. Longer than the pauses of two agents in turn. */
const quietMs = 300_000;

export function takeoverPause(random: () => number) {
  let takeovers = 0;
  let lastMs = Number.NEGATIVE_INFINITY;

  /** Milliseconds to wait after a takeover at `nowMs` of the monotonic clock. */
  return (nowMs: number): number => {
    takeovers = nowMs - lastMs < quietMs ? takeovers + 1 : 1;
    lastMs = nowMs;
    const pause = Math.min(longestMs, firstMs * growth ** Math.min(takeovers - 1, 10));
    return pause * (1 + random() / 5);
  };
}
