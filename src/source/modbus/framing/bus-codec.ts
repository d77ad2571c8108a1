// Frame formats of serial buses, both without a transaction id: binary with CRC, or hexadecimal with LRC. Pure.
//
//   rtu     unit, PDU, CRC-16 low byte first
//   ascii   ':', then in hexadecimal: unit, PDU, LRC; then CR LF
import { dataBytes, functionOf, identityPduBytes, maxPduBytes, readAskedFor, type UnitRequest } from "../config/pdu.ts";

export interface BusFrame {
  readonly unit: number;
  readonly pdu: Uint8Array;
}

export interface BusCodec {
  encode(frame: BusFrame): Uint8Array;
  /**
   * Finds the frames with a valid checksum in `bytes`: replies and read requests. A partial answer to `awaited` is not
   * searched for other frames. `rest`: the position from which bytes may still become a frame.
   */
  scan(bytes: Uint8Array, awaited?: UnitRequest): { readonly frames: readonly BusFrame[]; readonly rest: number };
}

const longestRtu = maxPduBytes + 3;
const rtuRequestBytes = 8;
const longestAscii = 2 * (maxPduBytes + 2) + 3;

export const rtuCodec: BusCodec = {
  encode({ unit, pdu }) {
    const frame = new Uint8Array(pdu.length + 3);
    frame[0] = unit;
    frame.set(pdu, 1);
    const crc = crc16(frame.subarray(0, -2));
    frame.set([crc & 0xff, crc >> 8], frame.length - 2);
    return frame;
  },
  scan(bytes, awaited) {
    const frames: BusFrame[] = [];
    let rest = 0;
    for (let at = 0; at < bytes.length; ) {
      const length = rtuReplyBytes(bytes, at, awaited);
      const frame = rtuFrame(bytes, at, length);
      const begun = bytes.subarray(at, at + length);
      if (!frame && begun.length < length && awaited && beginsAnswer(begun, awaited)) break;
      // Perhaps a request of another master.
      const request = frame ? undefined : rtuFrame(bytes, at, rtuRequestBytes);
      const found = frame ?? (request && readAskedFor(request.pdu) && request);
      if (found) {
        frames.push(found);
        at += found.pdu.length + 3;
        rest = at;
      } else at++;
    }
    return { frames, rest: Math.max(rest, bytes.length - longestRtu) };
  },
};

/** The frame of `length` bytes at `at`; a valid checksum leaves the residue 0. Undefined if invalid or incomplete. */
function rtuFrame(bytes: Uint8Array, at: number, length: number): BusFrame | undefined {
  if (length === 0 || at + length > bytes.length) return undefined;
  const frame = bytes.subarray(at, at + length);
  return crc16(frame) === 0 ? { unit: frame[0]!, pdu: frame.slice(1, -2) } : undefined;
}

/** The data of an answer may look like a frame. */
function beginsAnswer([unit, code, second]: Uint8Array, request: UnitRequest): boolean {
  if (unit !== request.unit || code !== functionOf(request)) return false;
  return second === undefined || "identity" in request || second === dataBytes(request);
}

/** Length of a reply that begins at `at`, or its known minimum; 0 if none does. */
function rtuReplyBytes(bytes: Uint8Array, at: number, awaited: UnitRequest | undefined): number {
  const code = bytes[at + 1] ?? 0;
  if (code >= 1 && code <= 4) return 5 + (bytes[at + 2] ?? 0);
  // Identity replies are matched only if awaited: fewer formats mean fewer false matches in noise.
  const own = awaited && "identity" in awaited ? functionOf(awaited) : 0;
  if ((code >= 0x81 && code <= 0x84) || code === (own | 0x80)) return 5;
  if (own === 0 || code !== own) return 0;
  const pduBytes = identityPduBytes(bytes.subarray(at + 1)) ?? bytes.length - at;
  return pduBytes === 0 ? 0 : pduBytes + 3;
}

export const asciiCodec: BusCodec = {
  encode({ unit, pdu }) {
    const bytes = Uint8Array.of(unit, ...pdu);
    return Buffer.from(
      `:${Buffer.from([...bytes, lrc(bytes)])
        .toString("hex")
        .toUpperCase()}\r\n`,
      "latin1",
    );
  },
  scan(bytes) {
    const text = Buffer.from(bytes).toString("latin1");
    const frames: BusFrame[] = [];
    let rest = 0;
    for (const match of text.matchAll(/:((?:[0-9A-Fa-f]{2}){4,255})\r\n/g)) {
      const frame = new Uint8Array(Buffer.from(match[1] ?? "", "hex"));
      if (lrc(frame) === 0) frames.push({ unit: frame[0]!, pdu: frame.slice(1, -1) });
      rest = match.index + match[0].length;
    }
    return { frames, rest: Math.max(rest, bytes.length - longestAscii) };
  },
};

/** CRC table: index is the lowest byte. */
const remainders = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0xa0_01 : crc >> 1;
  return crc;
});

/** CRC-16 with the polynomial 0xA001 and the initial value 0xFFFF. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0xff_ff;
  for (let i = 0; i < bytes.length; i++) crc = (crc >> 8) ^ remainders[(crc ^ bytes[i]!) & 0xff]!;
  return crc;
}

/** The value that makes the sum of all bytes 0. */
function lrc(bytes: Uint8Array): number {
  return -bytes.reduce((sum, byte) => sum + byte, 0) & 0xff;
}
