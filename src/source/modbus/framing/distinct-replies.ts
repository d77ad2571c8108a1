// Tracks late answers on a bus, where frames have no id: answers to requests that timed out may still come. Pure.
//
// A unit answers in order, so an answer that matches none of them shows that no earlier one can come.
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
export type KnownLateReplies = Readonly<Record<string, readonly Expected[]>>;

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
      return byUnit.get(unit)?.length ?? 0;
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
      const step = isRegisterTable(request.table) ? 1 : 8;
      // Two lengths: the second one for a unit that ignored the first.
      const inOtherTable = [1, 1 + step].map((count) => ({ ...request, table: otherTables[request.table], count }));
      return [...shorterReads(request), ...inOtherTable.filter((each) => isInProtocol(each) && mayRead(each))].find(
        (each) => !isAmbiguous(each),
      );
    },
    /**
     * A request whose reply confirms the accepted answer to `request`. A unit answers in order, so if the accepted frame
     * was foreign, the real answer precedes that reply. Undefined if all permitted requests are ambiguous.
     */
    confirmation(request: ReadRequest, mayRead: (request: ReadRequest) => boolean): ReadRequest | undefined {
      const step = isRegisterTable(request.table) ? 1 : 8;
      const others: readonly ReadRequest[] = [
        ...shorterReads(request),
        { ...request, count: request.count + step },
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

/** All shorter requests from the same start. */
function shorterReads(request: ReadRequest): readonly ReadRequest[] {
  const step = isRegisterTable(request.table) ? 1 : 8;
  return Array.from({ length: Math.ceil((request.count - 1) / step) }, (_, i) => ({ ...request, count: 1 + i * step }));
}

/** Whether the protocol can express the request. */
export function isInProtocol({ table, start, count }: ReadRequest): boolean {
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
