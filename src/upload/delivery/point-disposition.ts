// Decides on the points of an answered request: settle, search, resend, park or reject.
import type { InputId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { Outcome } from "../../core/sink.ts";
import { forEachInSlices } from "../../lib/flow/in-slices.ts";
import { rpcErrors } from "../../wire/json-rpc.ts";
import type { Bisection, Breaker } from "../failures/bisection.ts";
import type { ParkedInputs, ParkReason } from "../failures/parked-inputs.ts";
import { PlannedColumns, type QueueColumns } from "../packing/frame.ts";
import type { Rejects } from "../rejects/rejects.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { type InFlightRequest, SubBatch, type SubBatchColumn } from "../window/sub-batch.ts";
import type { Window } from "../window/window.ts";
import type { UploadTally } from "./delivery-status.ts";

export interface PointDispositionParts {
  readonly window: Window;
  readonly bisection: Bisection;
  readonly rejects: Rejects;
  readonly tally: UploadTally;
  readonly parked: ParkedInputs;
  /** True: inputs that the service does not accept wait in the buffer. False: their points are rejected. */
  readonly parks: boolean;
}

export interface Settled {
  readonly points: number;
  /** The settled points that came from queues of the window. */
  readonly parts: QueueColumns | undefined;
}

/** Filter for inputs. */
type InputFilter = (input: InputId) => boolean;
type Probe = Extract<InFlightRequest, { kind: "probe" }>;

const weight = ({ count }: { readonly count: number }) => count;
const mostNamed = 10;
const lanes = ["backlog", "live"] as const;
export const unnamed = "answers of the service do not name it";
/** HTTP status of an answer that omits an input. */
const okStatus = 200;

/** Joins columns of the same input, since a request names each input once. */
function merged(columns: readonly SubBatchColumn[]): SubBatchColumn[] {
  const byInput = new Map<InputId, SubBatchColumn>();
  for (const column of columns) byInput.set(column.input, byInput.get(column.input)?.followedBy(column) ?? column);
  return [...byInput.values()];
}

function chosen(parts: QueueColumns, isWanted: InputFilter): QueueColumns {
  const wanted = [...parts].filter(({ source }) => isWanted(source.input));
  return new PlannedColumns(
    wanted.map(({ source }) => source),
    Uint32Array.from(wanted, ({ count }) => count),
  );
}

/** Calls `work` for each part and lets other tasks run in between. */
async function forEachPart(
  { sources, counts }: QueueColumns,
  work: (queue: SeriesQueue, count: number) => void,
): Promise<void> {
  await forEachInSlices(
    sources,
    (_, i) => counts[i]!,
    (queue, i) => work(queue, counts[i]!),
  );
}

const restOf = ({ rest }: Probe, input: InputId) => rest.filter((column) => column.input === input);

export function pointDisposition(parts: PointDispositionParts, breaker: Breaker, log: Logger) {
  /** Inputs parked since the last log line. */
  let news: InputId[] = [];

  /** Returns whether the points are to be sent again, because no further input can be parked. */
  async function refuseInput(column: SubBatchColumn, reason: string): Promise<boolean> {
    const { parked, parks, window, bisection } = parts;
    const { input } = column;
    if (!parks || (column.count === 1 && parked.isProven(input))) {
      breaker.rejected(column.count);
      parked.rejected(input);
      await reject(column, rpcErrors.partialFailure.code, reason);
    } else if (parked.isProven(input)) {
      // Later points wait, so that they are not stored before these.
      window.forgetInput(input);
      parked.drain(input, reason);
      bisection.add(new SubBatch([column]), []);
    } else if (parked.isFull && !parked.has(input)) return true;
    else parkInput(input, "refused", reason, [column]);
    return false;
  }

  /** Columns of the selected inputs. Those of a fresh request leave the window. */
  async function columnsOf(inFlight: InFlightRequest, isWanted: InputFilter): Promise<readonly SubBatchColumn[]> {
    if (inFlight.kind !== "fresh") return inFlight.subBatch.columns.filter(({ input }) => isWanted(input));
    const columns: SubBatchColumn[] = [];
    await forEachPart(chosen(inFlight.parts, isWanted), (queue, count) => {
      columns.push(parts.window.extract(queue, count));
    });
    return merged(columns);
  }

  /**
   * Parks an input. All of its points leave the window, since a later one could otherwise arrive before an older one.
   * `columns`: its extracted points, except those in the search for refused ones.
   */
  function parkInput(input: InputId, why: ParkReason, reason: string, columns: readonly SubBatchColumn[] = []): void {
    const { window, bisection, parked } = parts;
    const queued = parked.isDistrusted(input) ? lanes.flatMap((lane) => window.extractAll(lane, input) ?? []) : [];
    giveBack(input, [...columns, ...bisection.withdraw(input), ...queued]);
    window.forgetInput(input);
    if (parked.park(input, why, reason)) news.push(input);
  }

  /** Returns extracted points of an input to the buffer. Those of a distrusted input are kept for its retries. */
  function giveBack(input: InputId, columns: readonly SubBatchColumn[]): void {
    const { window, parked } = parts;
    // These precede what is kept, and a block returns to the buffer only as a whole.
    const all = [...columns, ...parked.takeKept(input)];
    if (parked.isDistrusted(input)) parked.keep(merged(all));
    else for (const column of all) window.forgetExtracted(column);
  }

  /** The service accepted points of a parked input. Returns the rest of its lease, to be sent before later points. */
  function retried(inFlight: Probe, input: InputId): readonly SubBatchColumn[] {
    const { parked } = parts;
    const rest = merged([...restOf(inFlight, input), ...parked.takeKept(input)]);
    if (rest.length === 0) parked.join(input);
    else parked.drain(input, "");
    return rest;
  }

  function retriedInVain(inFlight: Probe, column: SubBatchColumn, reason: string): void {
    const { parked } = parts;
    giveBack(column.input, [column, ...restOf(inFlight, column.input)]);
    parked.triedInVain(column.input, reason);
  }

  async function reject(column: SubBatchColumn, code: number, reason: string): Promise<void> {
    const { input, times, values, count } = column;
    const { rejects, tally, window } = parts;
    const refused = Array.from(times, (time, i) => ({ input, time, value: values[i] ?? Number.NaN, code, reason }));
    // Settled only after the reject is written, so that a restart repeats the point.
    await rejects.add(refused, () => {
      tally.rejected(count);
      window.settleExtracted(column, true);
    });
  }

  /** Ends the parking of inputs whose bisection is complete. */
  function joinDrained(): void {
    const { parked, bisection } = parts;
    const draining = [...parked.draining()];
    if (draining.length === 0) return;
    const held = bisection.inputs();
    for (const input of draining) {
      if (held.has(input)) continue;
      const rest = parked.isDistrusted(input) ? [] : parked.takeKept(input);
      if (rest.length > 0) bisection.resend(rest);
      else parked.drained(input);
    }
  }

  function report(reason: string): void {
    const { length: count } = news;
    if (count === 0) return;
    const inputs = news.slice(0, mostNamed);
    news = [];
    log.warn(
      { inputs, count, reason },
      "the service does not take some inputs; their points stay in the buffer and are tried again",
    );
  }

  /** Parks an input, because requests with it fail and others succeed. */
  function blame(input: InputId, reason: string): void {
    if (parts.parked.isFull) return;
    parkInput(input, "refused", reason);
    report(reason);
  }

  return {
    blame,
    joinDrained,
    report,
    /** Settles the points of the inputs selected by `isStored` (default: all), and ends the search for them. */
    async settle(inFlight: InFlightRequest, isStored?: InputFilter): Promise<Settled> {
      const { window, parked, bisection } = parts;
      let points = 0;
      if (inFlight.kind === "fresh") {
        const parts = isStored ? chosen(inFlight.parts, isStored) : inFlight.parts;
        await forEachPart(parts, (queue, count) => {
          window.settle(queue, count);
          parked.named(queue.input);
          points += count;
        });
        return { points, parts };
      }
      if (inFlight.kind === "suspect") bisection.accepted();
      const again: SubBatchColumn[] = [];
      await forEachInSlices(inFlight.subBatch.columns, weight, (column) => {
        if (isStored?.(column.input) === false) return;
        window.settleExtracted(column, false);
        parked.named(column.input);
        if (inFlight.kind === "probe") again.push(...retried(inFlight, column.input));
        points += column.count;
      });
      bisection.resend(again);
      return { points, parts: undefined };
    },
    /** Refuses the named inputs as a whole, or single points of an input that was accepted before. */
    async refuse(inFlight: InFlightRequest, reasons: ReadonlyMap<InputId, string>): Promise<void> {
      const columns = await columnsOf(inFlight, (input) => reasons.has(input));
      // Together, since each sync of the rejects takes time.
      const isAgain = await Promise.all(
        columns.map(async (column) => {
          const reason = reasons.get(column.input) ?? "";
          if (inFlight.kind !== "probe") return await refuseInput(column, reason);
          retriedInVain(inFlight, column, reason);
          return false;
        }),
      );
      // In one request, since the service names each input that it refuses.
      parts.bisection.resend(columns.filter((_, i) => isAgain[i]));
    },
    /** Resends inputs that the answer omits, and parks those omitted too often. */
    async leaveOut(inFlight: InFlightRequest, isDecided: InputFilter): Promise<void> {
      const { parked, parks, bisection } = parts;
      const omitted = new Set(inFlight.frame.inputs.filter((input) => !isDecided(input)));
      const isOmitted = (input: InputId) => omitted.has(input);
      const columns = inFlight.kind === "fresh" ? [] : await columnsOf(inFlight, isOmitted);
      const byInput = Map.groupBy(columns, ({ input }) => input);
      const again: SubBatchColumn[] = [];
      const refused = new Set<InputId>();
      for (const input of omitted) {
        const own = byInput.get(input) ?? [];
        if (inFlight.kind === "probe") for (const column of own) retriedInVain(inFlight, column, unnamed);
        else if (!parked.leftOut(input) || (parked.isFull && !parked.has(input))) again.push(...own);
        else if (parks) parkInput(input, "unconfirmed", unnamed, own);
        else refused.add(input);
      }
      if (refused.size > 0)
        await Promise.all(
          (await columnsOf(inFlight, (input) => refused.has(input))).map((column) => reject(column, okStatus, unnamed)),
        );
      bisection.resend(again);
      joinDrained();
    },
    /** Starts or continues the search for the cause of a refusal. Other points are not delayed. */
    async search(
      inFlight: InFlightRequest,
      { code, reason, inputs }: Extract<Outcome, { kind: "refused" }>,
    ): Promise<void> {
      const { parked, parks, bisection } = parts;
      if (inFlight.kind === "fresh") bisection.add(new SubBatch(await columnsOf(inFlight, () => true)), inputs, true);
      else if (inFlight.kind === "probe") {
        // The input itself is accepted now; its bad points are found by bisection.
        for (const { input } of inFlight.subBatch.columns) parked.drain(input, reason);
        // The rest follows what was sent, since it may contain later points of the same time.
        bisection.resend(merged(inFlight.rest));
        // A distrusted input comes alone, and all of its other points are kept.
        const isLast = inFlight.subBatch.columns.every(({ input }) => parked.isDistrusted(input));
        bisection.add(new SubBatch([...inFlight.subBatch.columns]), inputs, isLast);
      } else
        for (const column of bisection.refused(inputs)?.columns ?? []) {
          if (!parked.isAtFault(column.input)) breaker.rejected(1);
          await reject(column, code, reason);
          if (parks && parked.rejectedUnnamed(column.input)) blame(column.input, reason);
        }
      joinDrained();
    },
    /** Parks the inputs of a retry or of a single point. `isAtFault`: of several points, too. False: it did nothing. */
    park(inFlight: InFlightRequest, reason: string, isAtFault = false): boolean {
      const { parked, parks } = parts;
      if (inFlight.kind === "probe") {
        for (const column of inFlight.subBatch.columns) retriedInVain(inFlight, column, reason);
        return true;
      }
      const { points, inputs } = inFlight.frame;
      const [input] = inputs;
      if (input === undefined || inputs.length > 1 || !parks) return false;
      // Further points of a parked input belong to its retry.
      const isRetry = parked.has(input);
      if (!isRetry && ((points > 1 && !isAtFault) || parked.isFull)) return false;
      parkInput(input, "refused", reason);
      if (isRetry) parked.triedInVain(input, reason);
      return true;
    },
  };
}
