// Tracks late answers on a bus, where frames have no id: answers to requests that timed out may still come. Pure.
//
// A unit answers in the order in which it is asked. So an answer that fits none of these says that none of them will
// come any more; and where the next request is one whose answer could be one of them, another can be asked before it
// whose answer could not.
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import { dataBytes, functionOf, isException, protocolLimit } from "../config/pdu.ts";
import type { Table } from "../config/value-type.ts";
import { isRegisterTable } from "../config/value-type.ts";

/** What the answer to a request looks like. */
export interface Expected {
  readonly code: number;
  /** Bytes of data; undefined: any number. */
  readonly bytes?: number | undefined;
}

/** By unit, in the order they were asked. */
export type KnownDoubts = Readonly<Record<string, readonly Expected[]>>;

/** Late answers that are tracked for each unit. A unit that never answers adds one with each request. */
const maxDoubts = 32;

export class Doubts {
  readonly #byUnit: Map<number, readonly Expected[]>;

  /** `known`: from a connection before, on which the same units answer. */
  constructor(known: KnownDoubts = {}) {
    this.#byUnit = new Map(Object.entries(known).map(([unit, open]) => [Number(unit), open]));
  }

  /** How many answers of `unit` may still come. */
  count(unit: number): number {
    return this.#byUnit.get(unit)?.length ?? 0;
  }

  /** All of them, for keeping. */
  get known(): KnownDoubts {
    return Object.fromEntries(this.#byUnit);
  }

  /** `request` timed out. */
  add(request: UnitRequest): void {
    const { unit } = request;
    this.#byUnit.set(unit, [...this.#of(unit), expectedOf(request)].slice(-maxDoubts));
  }

  /** Whether `pdu` may be one of those of `unit`. */
  include(unit: number, pdu: Uint8Array): boolean {
    return this.#of(unit).some((each) => fits(each, pdu));
  }

  /** `pdu` is one of those of `unit`, and whatever was asked before it has been answered or will not be. */
  came(unit: number, pdu: Uint8Array): void {
    const open = this.#of(unit);
    const at = open.findIndex((each) => fits(each, pdu));
    if (at < 0) return;
    if (at === open.length - 1) this.#byUnit.delete(unit);
    else this.#byUnit.set(unit, open.slice(at + 1));
  }

  /** None of `unit` will come any more. */
  settle(unit: number): void {
    this.#byUnit.delete(unit);
  }

  /** Whether data in answer to `request` could not be told from one of those of its unit. */
  blur(request: UnitRequest): boolean {
    const { code, bytes } = expectedOf(request);
    return this.#of(request.unit).some(
      (each) => each.code === code && (each.bytes === undefined || bytes === undefined || each.bytes === bytes),
    );
  }

  /**
   * Where `request` is blurred: one whose answer is not, to be asked first. It reads the beginning of what `request`
   * does, so that nothing is touched that would not be anyway; where that cannot be shorter, the other table of its kind,
   * at which a unit that does not have it says so, unless it may not be asked for that. Undefined: there is no need for one,
   * or there is none.
   */
  telling(request: UnitRequest, mayAsk: (request: ReadRequest) => boolean = () => true): UnitRequest | undefined {
    if ("identity" in request || !this.blur(request)) return undefined;
    const step = isRegisterTable(request.table) ? 1 : 8;
    // The second where the first was not answered: a unit that is silent about a table would be asked for ever.
    const inOtherTable = [1, 1 + step].map((count) => ({ ...request, table: otherTables[request.table], count }));
    return [...shorterReads(request), ...inOtherTable.filter((each) => isInProtocol(each) && mayAsk(each))].find(
      (each) => !this.blur(each),
    );
  }

  /**
   * After an answer to `request` was accepted: a request whose reply confirms it. A unit answers in the order in which it is
   * asked, so if the accepted frame was not its answer, the right one comes before that reply. Undefined: every reply that
   * `mayAsk` allows to ask for could be taken for another answer.
   */
  confirmation(request: ReadRequest, mayAsk: (request: ReadRequest) => boolean): ReadRequest | undefined {
    const step = isRegisterTable(request.table) ? 1 : 8;
    const others: readonly ReadRequest[] = [
      ...shorterReads(request),
      { ...request, count: request.count + step },
      { ...request, table: otherTables[request.table], count: 1 },
    ];
    const isLike = (a: Expected, b: Expected) => a.code === b.code && a.bytes === b.bytes;
    return others.find(
      (each) =>
        isInProtocol(each) && !isLike(expectedOf(each), expectedOf(request)) && !this.blur(each) && mayAsk(each),
    );
  }

  #of(unit: number): readonly Expected[] {
    return this.#byUnit.get(unit) ?? [];
  }
}

/** The beginning of what `request` reads, in as many lengths as there are. */
function shorterReads(request: ReadRequest): readonly ReadRequest[] {
  const step = isRegisterTable(request.table) ? 1 : 8;
  return Array.from({ length: Math.ceil((request.count - 1) / step) }, (_, i) => ({ ...request, count: 1 + i * step }));
}

/** Whether the specification has such a request. */
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

/** What an answer is known by on a bus: unit, function and length; of an exception the function alone. */
export function kindOfReply(unit: number, pdu: Uint8Array): string {
  const [code = 0, bytes = 0] = pdu;
  return code & 0x80 ? `${unit} ${code}` : `${unit} ${code} ${bytes}`;
}

/** Of data, and of an exception. */
export function kindsOf(unit: number, { code, bytes }: Expected): readonly string[] {
  return [`${unit} ${code} ${bytes}`, `${unit} ${code | 0x80}`];
}
