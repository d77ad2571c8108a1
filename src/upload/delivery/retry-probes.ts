// Retries of parked inputs: many in one request, with few points each.
import type { InputId } from "../../core/point.ts";
import type { ParkedInputs } from "../failures/parked-inputs.ts";
import type { Prefetcher } from "../window/prefetcher.ts";
import { type InFlightRequest, SubBatch, type SubBatchColumn } from "../window/sub-batch.ts";
import type { Window } from "../window/window.ts";
import type { Loader } from "./loader.ts";

/** Most inputs in a request. If they share no times, the number of nulls is quadratic. */
const mostInputs = 32;
/** Points per input, unless a record of the buffer has more. */
const mostPoints = 100;
/** The same for a distrusted input, since each of its points will probably take two requests. */
const mostDistrusted = 8;

interface RetryProbesParts {
  readonly prefetcher: Prefetcher;
  readonly loader: Loader;
  readonly parked: ParkedInputs;
  readonly window: Window;
  readonly random: () => number;
}

export class RetryProbes {
  readonly #parts: RetryProbesParts;
  /** Whether the last turn was that of retries, which alternate with other requests. */
  #turn = true;

  constructor(parts: RetryProbesParts) {
    this.#parts = parts;
  }

  /** A request with the oldest points of due inputs. Undefined: none is due, or it is not the turn of retries. */
  async next(isAlone: boolean, signal: AbortSignal): Promise<InFlightRequest | undefined> {
    const { loader, parked, window } = this.#parts;
    this.#turn = !this.#turn || isAlone;
    if (!this.#turn) return undefined;
    const sent: SubBatchColumn[] = [];
    const rest: SubBatchColumn[] = [];
    for (const input of parked.due(mostInputs)) {
      // Older points of it are still returning to the buffer.
      const column = window.isReturning(input) ? undefined : await this.#take(input, signal);
      if (!column) {
        parked.postpone(input);
        continue;
      }
      const parts = parked.isDistrusted(input) ? [column] : this.#choose(input, column);
      for (const [i, part] of parts.entries()) if (part.count > 0) (i === 0 ? sent : rest).push(part);
    }
    if (sent.length === 0) return undefined;
    const inFlight = await loader.probe(new SubBatch(sent), rest);
    if (inFlight) return inFlight;
    // Too large: sends a single point per input, and fewer inputs if necessary.
    const firsts = sent.map((column) => column.part(0, 1));
    for (const column of sent) if (column.count > 1) rest.push(column.part(1, column.count));
    for (let count = sent.length; count > 0; count >>= 1) {
      const carried = new Set(sent.slice(0, count).map(({ input }) => input));
      const isCarried = ({ input }: SubBatchColumn) => carried.has(input);
      const single = await loader.probe(new SubBatch(firsts.filter(isCarried)), rest.filter(isCarried));
      if (!single) continue;
      for (const column of [...firsts, ...rest]) if (!isCarried(column)) window.forgetExtracted(column);
      return single;
    }
    return undefined;
  }

  /**
   * The oldest points. Of a distrusted input, in turn the newest ones, since good points may have followed many bad ones.
   */
  async #take(input: InputId, signal: AbortSignal): Promise<SubBatchColumn | undefined> {
    const { prefetcher, parked } = this.#parts;
    const most = parked.isDistrusted(input) ? mostDistrusted : mostPoints;
    const isNewest = parked.isDistrusted(input) && parked.tries(input) % 2 === 0;
    const newest = isNewest ? await prefetcher.takeSingle(input, most, "live", signal) : undefined;
    return newest ?? parked.takeKept(input, most)[0] ?? (await prefetcher.takeSingle(input, most, "backlog", signal));
  }

  /**
   * Splits the points of a retry into those to send and the rest. In turn, it sends all points, the oldest one, or a
   * random one. All points are fastest if the input is accepted again. If the service accepts a single point only,
   * other points are at fault.
   */
  #choose(input: InputId, column: SubBatchColumn): SubBatchColumn[] {
    const turn = this.#parts.parked.tries(input) % 3;
    const { count } = column;
    if (turn === 0 || count === 1) return [column];
    // The first point of equal times, because the last of them must be stored last.
    const at = turn === 1 ? 0 : column.times.indexOf(column.times[1 + Math.floor(this.#parts.random() * (count - 1))]!);
    return [column.part(at, at + 1), column.part(0, at), column.part(at + 1, count)];
  }
}
