// Requests and replies without the frame around them: functions 1 to 4, which read values, and 17 and 43/14, by which a
// device says what it is. There is no other here. Tells whether a reply can answer a request; `client.ts` decodes it.
import type { Table } from "./value-type.ts";

export interface ReadRequest {
  readonly unit: number;
  readonly table: Table;
  readonly start: number;
  /** Registers, or bits of `co` and `di`. */
  readonly count: number;
}

/** What a unit is: its server id (function 17), or the objects of its identification (function 43/14). */
export type IdentityRequest =
  | { readonly unit: number; readonly identity: "serverId" }
  | {
      readonly unit: number;
      readonly identity: "objects";
      /** Those that every device has that knows the function, or also those that a device may have. */
      readonly category: "basic" | "regular";
      /** Number of the first one wanted. */
      readonly from: number;
    };

export type UnitRequest = ReadRequest | IdentityRequest;

/**
 * What a unit answered. `bytes` of a `ReadRequest`: registers high byte first, or packed bits, exactly as many as were
 * asked for; of an `IdentityRequest`: what follows the byte count (17), or the MEI type (43).
 */
export type Answer =
  | { readonly kind: "data"; readonly bytes: Uint8Array }
  | { readonly kind: "exception"; readonly code: number };

const functions = { co: 1, di: 2, hr: 3, ir: 4 } as const satisfies Record<Table, number>;
const serverIdFunction = 17;
const identificationFunction = 43;
/** Of what function 43 carries: the identification. Others can write. */
const meiType = 14;
const categories = { basic: 1, regular: 2 } as const;
/** Most that a reply of 253 bytes can carry. */
export const protocolLimit = { co: 2_000, di: 2_000, hr: 125, ir: 125 } as const satisfies Record<Table, number>;
export const maxPduBytes = 253;
/** Length of a request with function 1 to 4: function, address, quantity. */
const requestPduBytes = 5;

export function encodeIdentityRequest(request: IdentityRequest): Uint8Array {
  return request.identity === "serverId"
    ? Uint8Array.of(serverIdFunction)
    : Uint8Array.of(identificationFunction, meiType, categories[request.category], request.from);
}

/** Throws `RangeError` where the protocol cannot express `request`. */
export function checkLimits({ table, start, count }: ReadRequest): void {
  if (count < 1 || count > protocolLimit[table] || start < 0 || start + count > 65_536)
    throw new RangeError(`cannot ask for ${count} at ${table}:${start}`);
}

export function functionOf(request: UnitRequest): number {
  if (!("identity" in request)) return functions[request.table];
  return request.identity === "serverId" ? serverIdFunction : identificationFunction;
}

/** Bytes of data that the reply to `request` has to carry. */
export function dataBytes({ table, count }: ReadRequest): number {
  return table === "hr" || table === "ir" ? count * 2 : Math.ceil(count / 8);
}

/** Bytes of the longest reply PDU that can answer `request`. */
export function longestReply(request: UnitRequest): number {
  return "identity" in request ? maxPduBytes : 2 + dataBytes(request);
}

/** What the answer to the request in `pdu` looks like; undefined: `pdu` is none that reads, or is a reply. */
export function readAskedFor(pdu: Uint8Array): { readonly code: number; readonly bytes: number } | undefined {
  const [code = 0, second = 0] = pdu;
  // Bits may come in three bytes: a reply that is as long as a request.
  if (pdu.length !== requestPduBytes || code < 1 || code > 4 || (code <= 2 && second === 3)) return undefined;
  const count = (pdu[3]! << 8) | pdu[4]!;
  if (count < 1 || count > protocolLimit[code <= 2 ? "co" : "hr"]) return undefined;
  return { code, bytes: code <= 2 ? Math.ceil(count / 8) : count * 2 };
}

/** Whether `pdu` says that function `code` failed. */
export function isException(pdu: Uint8Array, code: number): boolean {
  return pdu[0] === (code | 0x80);
}

/** In words why `pdu` cannot answer `request`; undefined: it can, and has the length that its content says. */
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

/** Length of the reply with an identity that `bytes` begin with, as it says of itself; 0: none does; undefined while that is not known. */
export function identityPduBytes(bytes: Uint8Array): number | undefined {
  const [code, second] = bytes;
  if (code === serverIdFunction) return second === undefined ? undefined : second + 2;
  if (code !== identificationFunction || (second !== undefined && second !== meiType)) return 0;
  // Function, MEI type, category, conformity, whether more follows, the next one's number, how many; then each with number and length.
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
