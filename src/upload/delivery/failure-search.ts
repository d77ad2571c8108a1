// Finds the series over which the service fails, where it answers every request that carries them with a server error.
//
// Nothing leaves the window. When one request has failed for a while, its series are suspects. Requests with some of them
// go out in turn with requests of all other series:
//
//   nothing is accepted    one suspect a request, another one each time: what a service that is down does not notice
//   first acceptance       all suspects at once: if the service was down, that was all
//   then                   half as many after a failure, twice as many after an acceptance
//   one fails by itself    not long after another request was accepted: its input is at fault
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Part } from "../packing/frame-plan.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

/** How often and how long the same request fails before its series are suspects. */
const leastFailures = 5;
const leastMs = 30_000;
/** After so many failures in a row the service may be down: enough to find one series among a million. */
export const mostFailures = 32;

export class FailureSearch {
  readonly #clock: Clock;
  /** Failures of one request in a row, and when the first of them was, on the monotonic clock in milliseconds. */
  #failures = 0;
  #since = 0;
  /** How many points of each were in the request that failed and are not accepted yet. */
  readonly #suspects = new Map<SeriesQueue, number>();
  /** Suspects in the next request that carries some. */
  #size = 1;
  /** The last request carried suspects. */
  #isTrial = false;
  /** A request was accepted since the search began. */
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

  /** Which series the next request may carry; undefined: all of them. */
  next(): ((queue: SeriesQueue) => boolean) | undefined {
    for (const queue of this.#suspects.keys()) if (queue.count === 0) this.#suspects.delete(queue);
    if (!this.isOn) return undefined;
    this.#isTrial = !this.#isTrial;
    if (!this.#isTrial) return (queue) => !this.#suspects.has(queue);
    const some = new Set(this.#suspects.keys().take(this.#size));
    return (queue) => some.has(queue);
  }

  /** The service answered a request of the window with a server error. `blamed`: the input that is at fault. */
  failed(parts: readonly Part[]): { readonly isSearched: boolean; readonly blamed?: InputId } {
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
    const [first] = parts;
    if (!this.#isTrial) this.#suspect(parts);
    else if (this.#size > 1) this.#size = Math.max(1, Math.min(this.#size, this.#suspects.size) >> 1);
    else if (first) {
      const left = this.#suspects.get(first.queue) ?? 0;
      this.#suspects.delete(first.queue);
      if (mayBlame) return { isSearched: true, blamed: first.queue.input };
      // Behind the others.
      this.#suspects.set(first.queue, left);
    }
    return { isSearched: true };
  }

  /** The service accepted these, or points that are not in the window. */
  accepted(parts: readonly Part[]): void {
    this.#failures = 0;
    this.#vain = 0;
    if (!this.isOn) return;
    for (const { queue, count } of parts) {
      const left = this.#suspects.get(queue);
      if (left === undefined) continue;
      if (left > count) this.#suspects.set(queue, left - count);
      else this.#suspects.delete(queue);
    }
    if (!this.#isAnswering) this.#size = this.#suspects.size;
    else if (this.#isTrial && parts.length > 0) this.#size *= 2;
    this.#isAnswering = true;
  }

  #suspect(parts: readonly Part[]): void {
    for (const { queue, count } of parts) this.#suspects.set(queue, count);
  }
}
