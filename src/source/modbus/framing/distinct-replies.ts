// Distinguishes replies on a bus, where frames have no id, only unit, function and length. Tracks answers to requests
// that timed out, which may still come, and chooses requests whose answers differ from those and from replies to another
// master. Pure.
//
// A unit answers in order, so an answer that matches no late one shows that no earlier one can come.
//
//   another master reads two registers, too      hr:40 .. 41
//   so the agent reads one to four more          hr:40 .. 42       after the block,
//                                                hr:39 .. 41       or before it,
//   and drops them. It reads the block alone if the device rejects more and no other master uses that length.
//
// If the other master uses all possible lengths, the block is not read.
import {
  dataBytes,
  functionOf,
  isException,
  protocolLimit,
  type ReadRequest,
  type UnitRequest,
} from "../config/pdu.ts";
import { isRegisterTable, type Table } from "../config/registers.ts";

/** The properties that identify the answer to a request. */
export interface Expected {
  readonly code: number;
  /** Bytes of data. Undefined: any number. */
  readonly bytes?: number | undefined;
}

/** Late answers by unit, in the order of the requests. */
type KnownLateReplies = Readonly<Record<string, readonly Expected[]>>;

/** Late answers tracked for each unit. A unit that never answers adds one with each request. */
const maxLateReplies = 32;

export type LateReplyTracker = ReturnType<typeof lateReplyTracker>;

/** `known`: late answers of an earlier connection to the same units. */
export function lateReplyTracker(known: KnownLateReplies = {}) {
  const byUnit: Map<number, readonly Expected[]> = new Map(
    Object.entries(known).map(([unit, open]) => [Number(unit), open]),
  );

  /** Whether data in answer to `request` could be mistaken for a late answer. */
  function isAmbiguous(request: UnitRequest): boolean {
    const { code, bytes } = expectedOf(request);
    return of(request.unit).some(
      (each) => each.code === code && (each.bytes === undefined || bytes === undefined || each.bytes === bytes),
    );
  }

  function of(unit: number): readonly Expected[] {
    return byUnit.get(unit) ?? [];
  }

  return {
    /** Number of answers of `unit` that may still come. */
    count(unit: number): number {
      return of(unit).length;
    },
    /** All late answers that may still come, for the next connection. */
    get known(): KnownLateReplies {
      return Object.fromEntries(byUnit);
    },
    add(request: UnitRequest): void {
      const { unit } = request;
      byUnit.set(unit, [...of(unit), expectedOf(request)].slice(-maxLateReplies));
    },
    /** Whether `pdu` may be a late answer of `unit`. */
    include(unit: number, pdu: Uint8Array): boolean {
      return of(unit).some((each) => fits(each, pdu));
    },
    /** Removes the late answer that `pdu` may be, and all older ones. */
    came(unit: number, pdu: Uint8Array): void {
      const open = of(unit);
      const at = open.findIndex((each) => fits(each, pdu));
      if (at < 0) return;
      if (at === open.length - 1) byUnit.delete(unit);
      else byUnit.set(unit, open.slice(at + 1));
    },
    settle(unit: number): void {
      byUnit.delete(unit);
    },
    isAmbiguous,
    /**
     * Resynchronises before `request` is sent: returns a request whose answer is not ambiguous. It reads the beginning
     * of the same block, so that no other address is touched. If none is shorter, it reads the other table of the kind,
     * if `mayRead` permits. Undefined if it is unnecessary or impossible.
     */
    resync(request: UnitRequest, mayRead: (request: ReadRequest) => boolean = () => true): UnitRequest | undefined {
      if ("identity" in request || !isAmbiguous(request)) return undefined;
      // Two lengths: the second one for a unit that ignored the first.
      const inOtherTable = [1, 1 + stepOf(request)].map((count) => ({
        ...request,
        table: otherTables[request.table],
        count,
      }));
      return [...shorterReads(request), ...inOtherTable.filter((each) => isInProtocol(each) && mayRead(each))].find(
        (each) => !isAmbiguous(each),
      );
    },
    /**
     * A request whose reply confirms the accepted answer to `request`. A unit answers in order, so if the accepted frame
     * was foreign, the real answer precedes that reply. Undefined if all permitted requests are ambiguous.
     */
    confirmation(request: ReadRequest, mayRead: (request: ReadRequest) => boolean): ReadRequest | undefined {
      const others: readonly ReadRequest[] = [
        ...shorterReads(request),
        { ...request, count: request.count + stepOf(request) },
        { ...request, table: otherTables[request.table], count: 1 },
      ];
      const isLike = (a: Expected, b: Expected) => a.code === b.code && a.bytes === b.bytes;
      return others.find(
        (each) =>
          isInProtocol(each) && !isLike(expectedOf(each), expectedOf(request)) && !isAmbiguous(each) && mayRead(each),
      );
    },
  };
}

/** Registers, or bits, by which the length of the reply grows. */
function stepOf({ table }: ReadRequest): number {
  return isRegisterTable(table) ? 1 : 8;
}

/** All shorter requests from the same start. */
function shorterReads(request: ReadRequest): readonly ReadRequest[] {
  const step = stepOf(request);
  return Array.from({ length: Math.ceil((request.count - 1) / step) }, (_, i) => ({ ...request, count: 1 + i * step }));
}

/** Whether the protocol can express the request. */
function isInProtocol({ table, start, count }: ReadRequest): boolean {
  return start >= 0 && count <= protocolLimit[table] && start + count <= 65_536;
}

const otherTables = { hr: "ir", ir: "hr", co: "di", di: "co" } as const satisfies Record<Table, Table>;

export function expectedOf(request: UnitRequest): Expected {
  const code = functionOf(request);
  return "identity" in request ? { code } : { code, bytes: dataBytes(request) };
}

function fits({ code, bytes }: Expected, pdu: Uint8Array): boolean {
  const [first, second] = pdu;
  return first === code ? bytes === undefined || bytes === second : isException(pdu, code);
}

/** Identifies a reply on a bus: unit, function and length; for an exception no length. */
export function kindOfReply(unit: number, pdu: Uint8Array): string {
  const [code = 0, bytes = 0] = pdu;
  return code & 0x80 ? `${unit} ${code}` : `${unit} ${code} ${bytes}`;
}

/** The kinds of a data reply and of an exception. */
export function kindsOf(unit: number, { code, bytes }: Expected): readonly string[] {
  return [`${unit} ${code} ${bytes}`, `${unit} ${code | 0x80}`];
}

// The second part chooses requests whose answers differ from replies to another master.

/** Most additional registers, or bytes of bits. */
const mostMore = 4;
/** Most blocks that a message names. */
const mostNamed = 3;

export interface DistinctRules {
  /** Whether a request may read addresses without a tag. */
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
      const failed = (each: ReadRequest) => failuresOf(sideOf(request, each), now);
      const isDistinct = (each: ReadRequest) =>
        isInProtocol(each) && (each === request || mayRead(each)) && !isForeign(each, now);
      const [side = []] = sides(request)
        .map((reads) => reads.filter((each) => isDistinct(each) && failed(each) < Number.POSITIVE_INFINITY))
        .filter((reads) => reads.length > 0)
        .toSorted(([a = request], [b = request]) => failed(a) - failed(b));
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
  const lengths = Array.from({ length: mostMore }, (_, i) => (i + 1) * stepOf(request));
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
