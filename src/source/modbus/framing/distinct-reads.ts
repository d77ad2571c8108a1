// Selects requests whose answers differ from replies to another master. On a bus, only unit, function and length
// identify a frame. Pure.
//
//   another master reads two registers, too      hr:40 .. 41
//   so the agent reads one to four more          hr:40 .. 42       after the block,
//                                                hr:39 .. 41       or before it,
//   and drops them. It reads the block alone if the device rejects more and no other master uses that length.
//
// If the other master uses all possible lengths, the block is not read.
import type { ReadRequest } from "../config/pdu.ts";
import { isRegisterTable } from "../config/registers.ts";
import { expectedOf, isInProtocol, kindsOf } from "./late-reply-tracker.ts";

/** Most additional registers, or bytes of bits. */
const mostMore = 4;
/** Most blocks that a message names. */
const mostNamed = 3;

export interface DistinctRules {
  /** Whether a unit may be asked for addresses without a tag. */
  readonly mayRead: (request: ReadRequest) => boolean;
  /** Whether the answer could be confused with a late one that may still come. Then another request must go first. */
  readonly isAmbiguous: (request: ReadRequest) => boolean;
}

/** `validMs`: how long foreign replies and failures are remembered. */
export function distinctReads(validMs: number) {
  /** Kind of reply → when another master last used it. */
  const foreign = new Map<string, number>();
  /** Block and side → failures in a row, and the time of the last. */
  const failures = new Map<string, { readonly count: number; readonly at: number }>();
  /** Blocks without a distinct request → when that was found. */
  const indistinct = new Map<string, number>();

  /** Whether another master has recently used the kind of reply that `request` expects. */
  function isForeign(request: ReadRequest, now: number): boolean {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    return now - (foreign.get(kind) ?? Number.NEGATIVE_INFINITY) < validMs;
  }

  function failuresOf(side: string, now: number): number {
    const known = failures.get(side);
    return known && now - known.at < validMs ? known.count : 0;
  }

  return {
    /** Another master has received or requested a reply of `kind`. */
    foreign(kind: string, now: number): void {
      foreign.set(kind, now);
    },
    /** A distinct request whose answer contains that to `request`. Undefined if there is none. */
    choose(request: ReadRequest, { mayRead, isAmbiguous }: DistinctRules, now: number): ReadRequest | undefined {
      const failures = (each: ReadRequest) => failuresOf(sideOf(request, each), now);
      const isDistinct = (each: ReadRequest) =>
        isInProtocol(each) && (each === request || mayRead(each)) && !isForeign(each, now);
      const [side = []] = sides(request)
        .map((reads) => reads.filter((each) => isDistinct(each) && failures(each) < Number.POSITIVE_INFINITY))
        .filter((reads) => reads.length > 0)
        .toSorted(([a = request], [b = request]) => failures(a) - failures(b));
      const chosen = side.find((each) => !isAmbiguous(each)) ?? side[0];
      if (chosen) indistinct.delete(nameOf(request));
      else indistinct.set(nameOf(request), now);
      return chosen;
    },
    /** Records the outcome of `sent` instead of `request`. Sides with fewer failures are preferred. */
    came(outcome: "read" | "refused" | "silent", sent: ReadRequest, request: ReadRequest, now: number): void {
      const side = sideOf(request, sent);
      if (outcome === "read") failures.delete(side);
      else {
        const count = outcome === "refused" ? Number.POSITIVE_INFINITY : failuresOf(side, now) + 1;
        failures.set(side, { count, at: now });
      }
    },
    /** Blocks without a distinct request, such as `unit 1 hr:40 (2)`; empty if there are none. */
    indistinct(now: number): string {
      const names = [...indistinct].filter(([, at]) => now - at < validMs).map(([name]) => name);
      const more = names.length > mostNamed ? ` and ${names.length - mostNamed} more` : "";
      return names.slice(0, mostNamed).join(", ") + more;
    },
    isForeign,
  };
}

/** Extensions after `request`, extensions before it, and `request` alone. */
function sides(request: ReadRequest): readonly (readonly ReadRequest[])[] {
  const step = isRegisterTable(request.table) ? 1 : 8;
  const lengths = Array.from({ length: mostMore }, (_, i) => (i + 1) * step);
  return [
    lengths.map((more) => ({ ...request, count: request.count + more })),
    lengths.map((more) => ({ ...request, start: request.start - more, count: request.count + more })),
    [request],
  ];
}

function sideOf(request: ReadRequest, sent: ReadRequest): string {
  const side = sent.start < request.start ? "before" : sent.count > request.count ? "behind" : "alone";
  return `${nameOf(request)} ${side}`;
}

function nameOf({ unit, table, start, count }: ReadRequest): string {
  return `unit ${unit} ${table}:${start} (${count})`;
}
