// Finds the series on which the service fails, if every request with them gets a server error.
//
// All points stay in the window. After one request has failed for a while, its series become suspects. Requests with
// some of them then alternate with requests of all other series:
//
//   nothing is accepted    one suspect a request, a different one each time: harmless if the service is down
//   first acceptance       all suspects at once: if the service was down, this succeeds
//   then                   half as many after a failure, twice as many after an acceptance
//   one fails by itself    shortly after another request was accepted: its input is at fault
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { QueueColumns } from "../packing/frame.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

/** Consecutive failures and duration before the series of a request become suspects. */
const leastFailures = 5;
const leastMs = 30_000;
/** After this many failures in a row, the service may be down. Enough to find one series in a million. */
export const mostFailures = 32;

export class FailureSearch {
  readonly #clock: Clock;
  /** Consecutive failures of one request, and the monotonic time of the first in milliseconds. */
  #failures = 0;
  #since = 0;
  /** Suspect → its points in the failed request that are not accepted yet. */
  readonly #suspects = new Map<SeriesQueue, number>();
  #size = 1;
  #isTrial = false;
  /** Whether a request was accepted since the search began. */
  #isAnswering = false;
  /** Failures since the last acceptance. */
  #vain = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#suspects.size > 0;
  }

  get isAnswering(): boolean {
    return this.#isAnswering;
  }

  /** Filter for the series of the next request. Undefined: all series. */
  next(): ((queue: SeriesQueue) => boolean) | undefined {
    for (const queue of this.#suspects.keys()) if (queue.count === 0) this.#suspects.delete(queue);
    if (!this.isOn) return undefined;
    this.#isTrial = !this.#isTrial;
    if (!this.#isTrial) return (queue) => !this.#suspects.has(queue);
    const some = new Set(this.#suspects.keys().take(this.#size));
    return (queue) => some.has(queue);
  }

  /** The service answered a request with a server error. `blamed`: the input at fault. */
  failed(parts: QueueColumns): { readonly isSearched: boolean; readonly blamed?: InputId } {
    if (!this.isOn) {
      const now = this.#clock.monotonic();
      if (this.#failures++ === 0) this.#since = now;
      if (this.#failures < leastFailures || now - this.#since < leastMs) return { isSearched: false };
      this.#suspect(parts);
      this.#size = 1;
      this.#isTrial = false;
      this.#isAnswering = false;
      return { isSearched: true };
    }
    const mayBlame = this.#isAnswering && ++this.#vain <= mostFailures;
    const [first] = parts.sources;
    if (!this.#isTrial) this.#suspect(parts);
    else if (this.#size > 1) this.#size = Math.max(1, Math.min(this.#size, this.#suspects.size) >> 1);
    else if (first) {
      const left = this.#suspects.get(first) ?? 0;
      this.#suspects.delete(first);
      if (mayBlame) return { isSearched: true, blamed: first.input };
      // Moves it to the end.
      this.#suspects.set(first, left);
    }
    return { isSearched: true };
  }

  /** The service accepted these parts, or points outside the window (undefined). */
  accepted(parts: QueueColumns | undefined): void {
    this.#failures = 0;
    this.#vain = 0;
    if (!this.isOn) return;
    for (const { source: queue, count } of parts ?? []) {
      const left = this.#suspects.get(queue);
      if (left === undefined) continue;
      if (left > count) this.#suspects.set(queue, left - count);
      else this.#suspects.delete(queue);
    }
    if (!this.#isAnswering) this.#size = this.#suspects.size;
    else if (this.#isTrial && parts && parts.length > 0) this.#size *= 2;
    this.#isAnswering = true;
  }

  #suspect(parts: QueueColumns): void {
    for (const { source, count } of parts) this.#suspects.set(source, count);
  }
}
