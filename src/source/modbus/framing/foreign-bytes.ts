// Identifies bytes of another protocol or frame format, and suggests the right URL. Pure.

import type { FrameFormat } from "../config/endpoint.ts";
import { dataBytes, functionOf, type UnitRequest } from "../config/pdu.ts";
import { crc16 } from "./bus-codec.ts";

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
