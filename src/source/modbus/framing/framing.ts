// The contract of a framing: it encodes requests and extracts the answers that match them. For all framings, identifies
// bytes of another protocol or frame format and suggests the right URL. Pure.
import type { FrameFormat } from "../config/endpoint.ts";
import { type Answer, dataBytes, functionOf, type ReadRequest, type UnitRequest } from "../config/pdu.ts";
import { crc16 } from "./bus-codec.ts";

/**
 * One request at a time: `begin`, then `receive` until it returns the answer. At the deadline `expire`, then `abandon`.
 */
export interface Framing {
  /** A request to resynchronise with, if the answer to `request` could be mistaken for a late one. Undefined if none helps. */
  resync(request: UnitRequest): UnitRequest | undefined;
  /** The frame of `request`, whose PDU is `pdu`. */
  begin(request: UnitRequest, pdu: Uint8Array): Uint8Array;
  /**
   * Processes received bytes. Returns the PDU of the answer once complete; it may be a view of `chunk`. Its unit,
   * function, byte count and length match the request. Other replies are counted and discarded. Throws
   * `SOURCE_PROTOCOL` if frames can no longer be separated: close the connection.
   */
  receive(chunk: Uint8Array): Uint8Array | undefined;
  /** A request whose answer contains that to `request`. Undefined if any could be a reply to another master. */
  distinct?(request: UnitRequest): UnitRequest | undefined;
  /** Records the `answer` to `sent` (undefined: silence). True if the unit rejects more than `request`. */
  refusesMore?(sent: UnitRequest, request: UnitRequest, answer: Answer | undefined): boolean;
  /** Monotonic time when `request`, waiting since `since`, may be sent without confusion. Default: at once. */
  clearAt?(request: UnitRequest, since: number): number;
  /** Time until which an answer is held, in case another contradicts it. Undefined if none is held. */
  readonly settlesAt?: number | undefined;
  /** Ends the request at `settlesAt`. Undefined if the answer may belong to another master. */
  settle?(): Uint8Array | undefined;
  /** A request to send next, whose answer confirms the data received for `sent`. Undefined if none is needed. */
  confirmation?(sent: UnitRequest): ReadRequest | undefined;
  /** Reports the confirmation. `closed`: the connection ended during it; `lost`: before. False: reject the answer. */
  isConfirmed?(outcome: "answered" | "silent" | "contested" | "closed" | "lost"): boolean;
  /** Whether a received answer may be late, so that another one may follow. */
  readonly holding: boolean;
  /** At the deadline, returns the answer that was held because it might be late. */
  expire(): Uint8Array | undefined;
  /** Abandons the request. False if a late answer could be mistaken for another: close the connection. */
  abandon(): boolean;
  /** Replies discarded so far: late or mismatched. */
  readonly discarded: number;
  /** The last late reply to a request that timed out: its unit, and the number of such replies. */
  readonly late: { readonly unit: number; readonly count: number };
  /** Why the last reply since `begin` was discarded. */
  readonly mismatch: string | undefined;
}

export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** Bytes that suffice for identification. */
export const tellingBytes = 64;
const modbusPort = 502;

/**
 * What the bytes are, such as `RTU frames`, and a hint. Undefined if they are unknown, or in the expected format. `peer`:
 * origin of the bytes as `host:port`.
 */
export function foreignBytes(
  bytes: Uint8Array,
  { request, expected, peer }: { request: UnitRequest; expected: FrameFormat; peer: string },
): { readonly what: string; readonly hint: string } | undefined {
  const frames = framesOf(bytes, request);
  if (frames) {
    const { what, scheme, format } = frames;
    return format === expected ? undefined : { what, hint: `write url: ${scheme}://${peer}` };
  }
  const host = peer.replace(/:\d+$/, "");
  const plain = `Modbus TCP is at port ${modbusPort} as a rule: url: tcp://${host}:${modbusPort}`;
  const text = textOf(bytes);
  if (text.startsWith("HTTP/")) return { what: `the answer of a web server (${text})`, hint: plain };
  const [type = 0, major, minor = 255] = bytes;
  // The header of a TLS record: alert or handshake, version 3.0 to 3.4.
  if ((type === 0x15 || type === 0x16) && major === 3 && minor <= 4)
    return { what: "a TLS record", hint: `Modbus over TLS is not supported, use the plain port: ${plain}` };
  return text.length < shortestText ? undefined : { what: `text (${text})`, hint: plain };
}

function framesOf(bytes: Uint8Array, request: UnitRequest) {
  const code = functionOf(request);
  const [first = 0, second = 0, third = 0] = bytes;
  if (first === request.unit && (second & 0x7f) === code) {
    const isData = second === code;
    const size = isData ? 5 + third : 5;
    const rtu = { what: "RTU frames", scheme: "rtu+tcp", format: "rtu" } as const;
    if (bytes.length >= size) return crc16(bytes.subarray(0, size)) === 0 ? rtu : undefined;
    // The frame may be incomplete. Then the length field must match the request.
    const isExpected = isData ? !("identity" in request) && third === dataBytes(request) : bytes.length > 2;
    if (isExpected) return { ...rtu, what: "what looks like RTU frames" };
  }
  if (/^:[0-9A-F]{4,}/.test(textOf(bytes)))
    return { what: "ASCII frames", scheme: "ascii+tcp", format: "ascii" } as const;
  const isMbap = bytes.length >= 8 && (third | bytes[3]! | bytes[4]!) === 0 && bytes[5] === bytes.length - 6;
  if (isMbap && (bytes[7]! & 0x7f) === code)
    return { what: "Modbus TCP frames", scheme: "tcp", format: "mbap" } as const;
  return undefined;
}

const shortestText = 4;
const longestText = 40;

/** The printable start of the bytes. */
function textOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.subarray(0, tellingBytes)).toString("latin1");
  return (/^[ -~]+/.exec(text)?.[0] ?? "").slice(0, longestText).trim();
}
