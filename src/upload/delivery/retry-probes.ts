// Tries parked inputs again, many in one request, with few points each.
import type { InputId } from "../../core/point.ts";
import type { Loader } from "./loader.ts";
import type { ParkedInputs } from "./parked-inputs.ts";
import { Portion, type PortionColumn, type Shipment } from "./portion.ts";
import type { Prefetcher } from "./prefetcher.ts";
import type { Window } from "./window.ts";

/** Inputs of one request. Where they share no times it has nulls for the square of them. */
const mostInputs = 32;
/** Points of each, where the buffer stored fewer together. */
const mostPoints = 100;

export interface RetryProbesParts {
  readonly prefetcher: Prefetcher;
  readonly loader: Loader;
  readonly parked: ParkedInputs;
  readonly window: Window;
  readonly random: () => number;
}

export class RetryProbes {
  readonly #parts: RetryProbesParts;
  /** Others have their turn between two. */
  #turn = true;

  constructor(parts: RetryProbesParts) {
    this.#parts = parts;
  }

  /** A request with the oldest points of inputs that are due; undefined: none is, or it is not its turn. */
  async next(isAlone: boolean, signal: AbortSignal): Promise<Shipment | undefined> {
    const { prefetcher, loader, parked, window } = this.#parts;
    this.#turn = !this.#turn || isAlone;
    if (!this.#turn) return undefined;
    const sent: PortionColumn[] = [];
    const rest: PortionColumn[] = [];
    for (const input of parked.due(mostInputs)) {
      // Older points of it are on their way back to the buffer.
      const column = window.isReturning(input) ? undefined : await prefetcher.takeSingle(input, mostPoints, signal);
      if (!column) {
        parked.postpone(input);
        continue;
      }
      for (const [i, part] of this.#choose(input, column).entries())
        if (part.count > 0) (i === 0 ? sent : rest).push(part);
    }
    if (sent.length === 0) return undefined;
    const shipment = await loader.probe(new Portion(sent), rest);
    if (shipment) return shipment;
    // Too large: a single point of each, and of fewer inputs where that is too large as well.
    const firsts = sent.map((column) => column.part(0, 1));
    for (const column of sent) if (column.count > 1) rest.push(column.part(1, column.count));
    for (let count = sent.length; count > 0; count >>= 1) {
      const carried = new Set(sent.slice(0, count).map(({ input }) => input));
      const isCarried = ({ input }: PortionColumn) => carried.has(input);
      const single = await loader.probe(new Portion(firsts.filter(isCarried)), rest.filter(isCarried));
      if (!single) continue;
      for (const column of [...firsts, ...rest]) if (!isCarried(column)) window.forgetExtracted(column);
      return single;
    }
    return undefined;
  }

  /**
   * What to send of it, and what not. By turns all of it, which is quickest where the input is taken again; the oldest
   * point; and another one. Where the service takes a point of an input whose others it refuses, points are at fault.
   */
  #choose(input: InputId, column: PortionColumn): PortionColumn[] {
    const turn = this.#parts.parked.tries(input) % 3;
    const { count } = column;
    if (turn === 0 || count === 1) return [column];
    // The first of those with one time: the others follow it, and the last of them is to be stored last.
    const at = turn === 1 ? 0 : column.times.indexOf(column.times[1 + Math.floor(this.#parts.random() * (count - 1))]!);
    return [column.part(at, at + 1), column.part(0, at), column.part(at + 1, count)];
  }
}
