// Requests and replies without framing: functions 1 to 4, which read values, and 17 and 43/14, which identify a device.
// No others are sent. Checks whether a reply matches a request, extracts the answer, and explains exceptions.
import type { Table } from "./registers.ts";

export interface ReadRequest {
  readonly unit: number;
  readonly table: Table;
  readonly start: number;
  /** Registers, or bits of `co` and `di`. */
  readonly count: number;
}

/** Requests the server id (function 17), or the identification objects (function 43/14). */
export type IdentityRequest =
  | { readonly unit: number; readonly identity: "serverId" }
  | {
      readonly unit: number;
      readonly identity: "objects";
      /** `basic`: mandatory objects; `regular`: also the optional ones. */
      readonly category: "basic" | "regular";
      /** Number of the first object. */
      readonly from: number;
    };

export type UnitRequest = ReadRequest | IdentityRequest;

/**
 * The reply of a unit.
 * `bytes` of a `ReadRequest`: registers high byte first, or packed bits, exactly as many as requested.
 * `bytes` of an `IdentityRequest`: the data after the byte count (17) or the MEI type (43).
 */
export type Answer =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "exception"; readonly code: number };

export const functions = { co: 1, di: 2, hr: 3, ir: 4 } as const satisfies Record<Table, number>;
const serverIdFunction = 17;
const identificationFunction = 43;
/** Read Device Identification. Other MEI types can write. */
const meiType = 14;
const categories = { basic: 1, regular: 2 } as const;
/** Limits of a reply PDU of 253 bytes. */
export const protocolLimit = { co: 2_000, di: 2_000, hr: 125, ir: 125 } as const satisfies Record<Table, number>;
export const maxPduBytes = 253;
/** Function, address and quantity of functions 1 to 4. */
const requestPduBytes = 5;

export function encodeIdentityRequest(request: IdentityRequest): Uint8Array {
  return request.identity === "serverId"
    ? Uint8Array.of(serverIdFunction)
    : Uint8Array.of(identificationFunction, meiType, categories[request.category], request.from);
}

/** Throws `RangeError` if the protocol cannot express `request`. */
export function checkLimits({ table, start, count }: ReadRequest): void {
  if (count < 1 || count > protocolLimit[table] || start < 0 || start + count > 65_536)
    throw new RangeError(`cannot ask for ${count} at ${table}:${start}`);
}

export function functionOf(request: UnitRequest): number {
  if (!("identity" in request)) return functions[request.table];
  return request.identity === "serverId" ? serverIdFunction : identificationFunction;
}

export function dataBytes({ table, count }: ReadRequest): number {
  return table === "hr" || table === "ir" ? count * 2 : Math.ceil(count / 8);
}

/** Bytes of the longest possible reply PDU. */
export function longestReply(request: UnitRequest): number {
  return "identity" in request ? maxPduBytes : 2 + dataBytes(request);
}

/** Function and data length of the reply to the read request in `pdu`. Undefined if `pdu` is not a read request. */
export function readAskedFor(pdu: Uint8Array): { readonly code: number; readonly bytes: number } | undefined {
  const [code = 0, second = 0] = pdu;
  // Three data bytes of bits make a reply as long as a request.
  if (pdu.length !== requestPduBytes || code < 1 || code > 4 || (code <= 2 && second === 3)) return undefined;
  const count = (pdu[3]! << 8) | pdu[4]!;
  if (count < 1 || count > protocolLimit[code <= 2 ? "co" : "hr"]) return undefined;
  return { code, bytes: code <= 2 ? Math.ceil(count / 8) : count * 2 };
}

/** Whether `pdu` is an exception reply to function `code`. */
export function isException(pdu: Uint8Array, code: number): boolean {
  return pdu[0] === (code | 0x80);
}

/** Why `pdu` cannot answer `request`. Undefined if it can, and its length matches its content. */
export function mismatchOf(pdu: Uint8Array, request: UnitRequest): string | undefined {
  const code = functionOf(request);
  const [first = 0, second = 0] = pdu;
  if (isException(pdu, code)) return pdu.length === 2 ? undefined : `an exception of ${pdu.length} bytes instead of 2`;
  if (first !== code) return `function ${first} instead of ${code}`;
  if ("identity" in request)
    return identityPduBytes(pdu) === pdu.length
      ? undefined
      : `${pdu.length} bytes, which is not what it says of itself`;
  const expected = dataBytes(request);
  if (second !== expected) return `a byte count of ${second} instead of ${expected}`;
  if (pdu.length !== expected + 2) return `${pdu.length - 2} bytes of data instead of ${expected}`;
  return undefined;
}

/** The answer in `pdu`, which matches `request`. Its second byte is a length, or the MEI type. */
export function answerIn(pdu: Uint8Array, request: UnitRequest): Answer {
  return isException(pdu, functionOf(request))
    ? { kind: "exception", code: pdu[1] ?? 0 }
    : // A copy, which `slice` of a `Buffer` is not.
      { kind: "data", bytes: new Uint8Array(pdu.subarray(2)) };
}

/** Length of the identity reply at the start of `bytes`. 0: not such a reply; undefined: too few bytes. */
export function identityPduBytes(bytes: Uint8Array): number | undefined {
  const [code, second] = bytes;
  if (code === serverIdFunction) return second === undefined ? undefined : second + 2;
  if (code !== identificationFunction || (second !== undefined && second !== meiType)) return 0;
  // Header: function, MEI type, category, conformity, more follows, next object, count. Each object: number, length,
  // data.
  let end = 7;
  const objects = bytes[6];
  if (objects === undefined) return undefined;
  for (let i = 0; i < objects; i++) {
    const length = bytes[end + 1];
    if (end > maxPduBytes) return 0;
    if (length === undefined) return undefined;
    end += 2 + length;
  }
  return end > maxPduBytes ? 0 : end;
}

/**
 * `unsupported`: the table or address does not exist; retry rarely. `split`: part of the block does not exist, or it is
 * too long. `busy`: retry soon. `fault`: no value this time. `away`: a gateway cannot reach the unit.
 */
export type Consequence = "unsupported" | "split" | "busy" | "fault" | "away";

const exceptions: Readonly<Record<number, { readonly meaning: string; readonly consequence: Consequence }>> = {
  1: { meaning: "illegal function: the device does not have this table", consequence: "unsupported" },
  2: { meaning: "illegal data address: the device does not have this address", consequence: "split" },
  3: { meaning: "illegal data value: the device does not allow so many at once", consequence: "split" },
  4: { meaning: "server device failure", consequence: "fault" },
  5: { meaning: "acknowledge: the device needs longer", consequence: "busy" },
  6: { meaning: "server device busy", consequence: "busy" },
  7: { meaning: "negative acknowledge", consequence: "fault" },
  8: { meaning: "memory parity error in the device", consequence: "fault" },
  10: { meaning: "gateway path unavailable: the gateway is misconfigured or overloaded", consequence: "away" },
  11: { meaning: "gateway target device failed to respond", consequence: "away" },
};

export function consequenceOf(code: number): Consequence {
  return exceptions[code]?.consequence ?? "fault";
}

/** Example: `exception 2: illegal data address …`. */
export function describeException(code: number): string {
  return `exception ${code}: ${exceptions[code]?.meaning ?? "a code of the vendor's own"}`;
}
