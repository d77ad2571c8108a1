// What to ask for next to another master, so that the answer can be told from the replies that it gets: a frame on a bus has
// no id, and is known by its unit, function and length alone. Pure.
//
//   another master reads two registers as well    hr:40 .. 41
//   so one to four more are read along            hr:40 .. 42    behind the block,
//                                              hr:39 .. 41       or before it,
//   and cut off. The block alone is asked for where the device gives no more and nobody else reads that length.
//
// Where each length that can be had is one that the other master reads, nothing is asked for: an answer would be no proof.
import type { ReadRequest } from "../config/pdu.ts";
import { isRegisterTable } from "../config/value-type.ts";
import { expectedOf, isInProtocol, kindsOf } from "./doubts.ts";

/** Registers, or bytes of bits, that are read along at most. */
const mostMore = 4;
/** Names in a text. */
const mostNamed = 3;

export interface DistinctRules {
  /** Whether a unit may be asked for what no tag wants. */
  readonly mayAsk: (request: ReadRequest) => boolean;
  /** Whether the answer could be confused with a late one that may still come. Then another request must go first. */
  readonly isBlurred: (request: ReadRequest) => boolean;
}

export class DistinctReads {
  readonly #validMs: number;
  /** By kind of reply: when it was last heard for another master. */
  readonly #foreign = new Map<string, number>();
  /** By block and side: how often in a row that was not answered, and when last. */
  readonly #failures = new Map<string, { readonly count: number; readonly at: number }>();
  /** Blocks of which no answer could be told apart, and when that was. */
  readonly #untold = new Map<string, number>();

  /** `validMs`: how long what was heard, or was not answered, is remembered. */
  constructor(validMs: number) {
    this.#validMs = validMs;
  }

  /** Another master got, or asked for, a reply of `kind`. */
  foreign(kind: string, now: number): void {
    this.#foreign.set(kind, now);
  }

  /** What to ask for instead of `request`, which its answer contains; undefined: no answer could be told apart. */
  choose(request: ReadRequest, { mayAsk, isBlurred }: DistinctRules, now: number): ReadRequest | undefined {
    const failures = (each: ReadRequest) => this.#failuresOf(sideOf(request, each), now);
    const isDistinct = (each: ReadRequest) =>
      isInProtocol(each) && (each === request || mayAsk(each)) && !this.isForeign(each, now);
    const [side = []] = sides(request)
      .map((reads) => reads.filter((each) => isDistinct(each) && failures(each) < Number.POSITIVE_INFINITY))
      .filter((reads) => reads.length > 0)
      .toSorted(([a = request], [b = request]) => failures(a) - failures(b));
    const chosen = side.find((each) => !isBlurred(each)) ?? side[0];
    if (chosen) this.#untold.delete(nameOf(request));
    else this.#untold.set(nameOf(request), now);
    return chosen;
  }

  /** What came of asking for `asked` instead of `request`. What fails is tried after everything that failed less. */
  came(outcome: "read" | "refused" | "silent", asked: ReadRequest, request: ReadRequest, now: number): void {
    const side = sideOf(request, asked);
    if (outcome === "read") this.#failures.delete(side);
    else {
      const count = outcome === "refused" ? Number.POSITIVE_INFINITY : this.#failuresOf(side, now) + 1;
      this.#failures.set(side, { count, at: now });
    }
  }

  /** `unit 1 hr:40 (2)`: the blocks of which nothing can be told apart; empty: there is none. */
  untold(now: number): string {
    const names = [...this.#untold].filter(([, at]) => now - at < this.#validMs).map(([name]) => name);
    const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : "";
    return names.slice(0, mostNamed).join(", ") + more;
  }

  /** Whether another master got, or asked for, a reply like that to `request` of late. */
  isForeign(request: ReadRequest, now: number): boolean {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    return now - (this.#foreign.get(kind) ?? Number.NEGATIVE_INFINITY) < this.#validMs;
  }

  #failuresOf(side: string, now: number): number {
    const known = this.#failures.get(side);
    return known && now - known.at < this.#validMs ? known.count : 0;
  }
}

/** Longer and longer behind `request`, and before it; and `request` alone. */
function sides(request: ReadRequest): readonly (readonly ReadRequest[])[] {
  const step = isRegisterTable(request.table) ? 1 : 8;
  const lengths = Array.from({ length: mostMore }, (_, i) => (i + 1) * step);
  return [
    lengths.map((more) => ({ ...request, count: request.count + more })),
    lengths.map((more) => ({ ...request, start: request.start - more, count: request.count + more })),
    [request],
  ];
}

function sideOf(request: ReadRequest, asked: ReadRequest): string {
  const side = asked.start < request.start ? "before" : asked.count > request.count ? "behind" : "alone";
  return `${nameOf(request)} ${side}`;
}

function nameOf({ unit, table, start, count }: ReadRequest): string {
  return `unit ${unit} ${table}:${start} (${count})`;
}
