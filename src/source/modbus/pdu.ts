// Requests and replies without the frame around them: functions 1 to 4, which read. There is no other here.
import type { Table } from "./value-type.ts";

export interface ReadRequest {
  readonly unit: number;
  readonly table: Table;
  readonly start: number;
  /** Registers, or bits of `co` and `di`. */
  readonly count: number;
}

/** What a unit answered. `bytes`: registers high byte first, or packed bits; exactly as many as were asked for. */
export type Answer =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "exception"; readonly code: number };

const functions = { co: 1, di: 2, hr: 3, ir: 4 } as const satisfies Record<Table, number>;
/** Most that a reply of 253 bytes can carry. */
export const protocolLimit = { co: 2_000, di: 2_000, hr: 125, ir: 125 } as const satisfies Record<Table, number>;
export const maxPduBytes = 253;

/** Function, address, quantity. */
export function encodeRead({ table, start, count }: ReadRequest): Uint8Array {
  if (count < 1 || count > protocolLimit[table] || start < 0 || start + count > 65_536)
    throw new RangeError(`cannot ask for ${count} at ${table}:${start}`);
  return Uint8Array.of(functions[table], start >> 8, start & 0xff, count >> 8, count & 0xff);
}

export function functionOf({ table }: ReadRequest): number {
  return functions[table];
}

/** Bytes of data that the reply to `request` has to carry. */
export function dataBytes({ table, count }: ReadRequest): number {
  return table === "hr" || table === "ir" ? count * 2 : Math.ceil(count / 8);
}

/** The answer to `request` in `pdu`, or in words why it cannot be one. `bytes` is a copy. */
export function decodeReply(pdu: Uint8Array, request: ReadRequest): Answer | string {
  const code = functions[request.table];
  const [first = 0, second = 0] = pdu;
  if (first === (code | 0x80))
    return pdu.length === 2 ? { kind: "exception", code: second } : `an exception of ${pdu.length} bytes instead of 2`;
  if (first !== code) return `function ${first} instead of ${code}`;
  const expected = dataBytes(request);
  if (second !== expected) return `a byte count of ${second} instead of ${expected}`;
  if (pdu.length !== expected + 2) return `${pdu.length - 2} bytes of data instead of ${expected}`;
  return { kind: "data", bytes: pdu.slice(2) };
}
