// What becomes of the points of a request: settled, searched, sent again, parked with their input, or refused for good.
import type { InputId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { Outcome } from "../../core/sink.ts";
import { forEachInSlices } from "../../lib/in-slices.ts";
import type { Part } from "../packing/frame-plan.ts";
import type { Bisection } from "./bisection.ts";
import type { Breaker } from "./breaker.ts";
import type { UploadTally } from "./delivery-status.ts";
import type { ParkedInputs, ParkReason } from "./parked-inputs.ts";
import { Portion, type PortionColumn, type Shipment } from "./portion.ts";
import type { Rejects } from "./rejects.ts";
import type { Window } from "./window.ts";

export interface PointDispositionParts {
  readonly window: Window;
  readonly bisection: Bisection;
  readonly rejects: Rejects;
  readonly tally: UploadTally;
  readonly parked: ParkedInputs;
  /** Whether inputs that the service does not take wait in the buffer. False: their points are refused for good. */
  readonly parks: boolean;
}

/** Points that left the window. */
export interface Settled {
  readonly points: number;
  /** Those that came from its queues. */
  readonly parts: readonly Part[];
}

/** Which inputs something is said of. */
type Says = (input: InputId) => boolean;
type Probe = Extract<Shipment, { kind: "probe" }>;

const weight = ({ count }: { readonly count: number }) => count;
/** Inputs that a line of the log names. */
const mostNamed = 10;
export const unnamed = "answers of the service do not name it";

/** A column for each input: a request names each once. */
function merged(columns: readonly PortionColumn[]): PortionColumn[] {
  const byInput = new Map<InputId, PortionColumn>();
  for (const column of columns) byInput.set(column.input, byInput.get(column.input)?.followedBy(column) ?? column);
  return [...byInput.values()];
}

const restOf = ({ rest }: Probe, input: InputId) => rest.filter((column) => column.input === input);

export class PointDisposition {
  readonly #parts: PointDispositionParts;
  readonly #breaker: Breaker;
  readonly #log: Logger;
  /** Parked since the last line of the log. */
  #news: InputId[] = [];

  constructor(parts: PointDispositionParts, breaker: Breaker, log: Logger) {
    this.#parts = parts;
    this.#breaker = breaker;
    this.#log = log;
  }

  /** The service has the points of these inputs. The request is answered: what it searched for is decided. */
  async settle(shipment: Shipment, isStored: Says): Promise<Settled> {
    const { window, parked, bisection } = this.#parts;
    const parts: Part[] = [];
    let points = 0;
    if (shipment.kind === "fresh") {
      await forEachInSlices(shipment.parts, weight, (part) => {
        const { queue, count } = part;
        if (!isStored(queue.input)) return;
        window.settle(queue, count);
        parked.named(queue.input);
        parts.push(part);
        points += count;
      });
      return { points, parts };
    }
    if (shipment.kind === "suspect") bisection.accepted();
    await forEachInSlices(shipment.portion.columns, weight, (column) => {
      if (!isStored(column.input)) return;
      window.settleExtracted(column, false);
      parked.named(column.input);
      if (shipment.kind === "probe") this.#retried(shipment, column.input);
      points += column.count;
    });
    return { points, parts };
  }

  /** The service names these inputs as refused: all of them, or single points of one that it took since it refused the input. */
  async refuse(shipment: Shipment, reasons: ReadonlyMap<InputId, string>): Promise<void> {
    for (const column of await this.#columnsOf(shipment, (input) => reasons.has(input))) {
      const reason = reasons.get(column.input) ?? "";
      if (shipment.kind === "probe") this.#retriedInVain(shipment, column, reason);
      else await this.#refuseInput(column, reason);
    }
  }

  /** Inputs of which the answer says nothing are sent again, and parked when that has happened too often. */
  async leaveOut(shipment: Shipment, isDecided: Says): Promise<void> {
    const { parked, parks, bisection } = this.#parts;
    const again: PortionColumn[] = [];
    for (const input of new Set(shipment.frame.inputs)) {
      if (isDecided(input)) continue;
      const isIt = (each: InputId) => each === input;
      const columns = shipment.kind === "fresh" ? [] : await this.#columnsOf(shipment, isIt);
      if (shipment.kind === "probe") for (const column of columns) this.#retriedInVain(shipment, column, unnamed);
      else if (!parked.leftOut(input) || (parked.isFull && !parked.has(input))) again.push(...columns);
      else if (parks) {
        this.#forget(input, columns);
        this.#park(input, "unconfirmed", unnamed);
      } else for (const column of await this.#columnsOf(shipment, isIt)) await this.#reject(column, undefined, unnamed);
    }
    bisection.resend(again);
    this.joinDrained();
  }

  /** Something in the request is wrong: what it is gets searched for while the rest goes on. */
  async search(shipment: Shipment, { code, reason, inputs }: Extract<Outcome, { kind: "refused" }>): Promise<void> {
    const { parked, bisection } = this.#parts;
    if (shipment.kind === "fresh") bisection.add(new Portion(await this.#columnsOf(shipment, () => true)), inputs);
    else if (shipment.kind === "probe") {
      // It is not refused as input any more: what is wrong with its points is found as with those of others.
      for (const { input } of shipment.portion.columns) parked.drain(input, reason);
      // The rest follows what was sent: it may hold later points of the same time.
      bisection.resend(merged(shipment.rest));
      bisection.add(new Portion([...shipment.portion.columns]), inputs);
    } else
      for (const column of bisection.refused(inputs)?.columns ?? []) {
        this.#breaker.rejected(1);
        await this.#reject(column, code, reason);
      }
    this.joinDrained();
  }

  /**
   * Parks the inputs of a retry, or that of a single point; `isAtFault`: of several points, too. False: the points stay where
   * they are.
   */
  setAside(shipment: Shipment, reason: string, isAtFault = false): boolean {
    const { parked, parks } = this.#parts;
    if (shipment.kind === "probe") {
      for (const column of shipment.portion.columns) this.#retriedInVain(shipment, column, reason);
      return true;
    }
    const { points, inputs } = shipment.frame;
    const [input] = inputs;
    if (input === undefined || inputs.length > 1 || !parks) return false;
    // What follows a point of a parked input is a part of its retry.
    const isRetry = parked.has(input);
    if (!isRetry && ((points > 1 && !isAtFault) || parked.isFull)) return false;
    this.#forget(input, []);
    this.#park(input, "refused", reason);
    if (isRetry) parked.triedInVain(input, reason);
    return true;
  }

  /** Requests that carry the input fail, and others do not. */
  blame(input: InputId, reason: string): void {
    if (this.#parts.parked.isFull) return;
    this.#forget(input, []);
    this.#park(input, "refused", reason);
    this.report(reason);
  }

  /** Inputs whose oldest points were searched are not parked any more once nothing of that is left. */
  joinDrained(): void {
    const { parked, bisection } = this.#parts;
    for (const input of parked.draining()) if (!bisection.holds(input)) parked.join(input);
  }

  /** Logs which inputs were parked since the last time. */
  report(reason: string): void {
    const { length: count } = this.#news;
    if (count === 0) return;
    const inputs = this.#news.slice(0, mostNamed);
    this.#news = [];
    this.#log.warn(
      { inputs, count, reason },
      "the service does not take some inputs; their points stay in the buffer and are tried again",
    );
  }

  async #refuseInput(column: PortionColumn, reason: string): Promise<void> {
    const { parked, parks, window, bisection } = this.#parts;
    const { input } = column;
    if (!parks || (column.count === 1 && parked.isProven(input))) {
      this.#breaker.rejected(column.count);
      parked.rejected(input);
      await this.#reject(column, undefined, reason);
    } else if (parked.isProven(input)) {
      // Later points of it wait, so that they are not stored before these.
      window.forgetInput(input);
      parked.drain(input, reason);
      bisection.add(new Portion([column]), []);
    } else if (parked.isFull && !parked.has(input)) bisection.resend([column]);
    else {
      this.#forget(input, [column]);
      this.#park(input, "refused", reason);
    }
  }

  /** Columns of these inputs; those of a fresh request are taken out of the window. */
  async #columnsOf(shipment: Shipment, isWanted: Says): Promise<readonly PortionColumn[]> {
    if (shipment.kind !== "fresh") return shipment.portion.columns.filter(({ input }) => isWanted(input));
    const columns: PortionColumn[] = [];
    const parts = shipment.parts.filter(({ queue }) => isWanted(queue.input));
    await forEachInSlices(parts, weight, ({ queue, count }) => {
      columns.push(this.#parts.window.extract(queue, count));
    });
    return merged(columns);
  }

  #park(input: InputId, why: ParkReason, reason: string): void {
    if (this.#parts.parked.park(input, why, reason)) this.#news.push(input);
  }

  /** All points of the input go back to the buffer: one that was sent alone could arrive before an older one. */
  #forget(input: InputId, columns: readonly PortionColumn[]): void {
    const { window, bisection } = this.#parts;
    for (const column of [...columns, ...bisection.withdraw(input)]) window.forgetExtracted(column);
    window.forgetInput(input);
  }

  /** The service took points of a parked input. What else was taken from the buffer goes out before later points of it. */
  #retried(shipment: Probe, input: InputId): void {
    const { parked, bisection } = this.#parts;
    const rest = merged(restOf(shipment, input));
    if (rest.length === 0) parked.join(input);
    else parked.drain(input, "");
    bisection.resend(rest);
  }

  #retriedInVain(shipment: Probe, column: PortionColumn, reason: string): void {
    const { window, parked } = this.#parts;
    for (const each of [column, ...restOf(shipment, column.input)]) window.forgetExtracted(each);
    parked.triedInVain(column.input, reason);
  }

  async #reject(column: PortionColumn, code: number | undefined, reason: string): Promise<void> {
    const { input, times, values, count } = column;
    const { rejects, tally, window } = this.#parts;
    const refused = Array.from(times, (time, i) => ({ input, time, value: values[i] ?? Number.NaN, code, reason }));
    // Not before it is written down: until then it comes again after a restart.
    await rejects.add(refused, () => {
      tally.rejected(count);
      window.settleExtracted(column, true);
    });
  }
}
