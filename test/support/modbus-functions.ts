// Parses any request that a Modbus client sent.
import { crc16 } from "../../src/source/modbus/framing/bus-codec.ts";

/** The request at the start of the bytes: its length with all framing, and its function. Undefined if there is none. */
type Frame = { readonly size: number; readonly code: number | undefined } | undefined;

/**
 * Lengths on a line: functions 17, 43/14, and those that read or write one value have fixed ones; the others contain
 * theirs.
 */
function rtu(bytes: Buffer): Frame {
  const sizes = [8, 4, 7, 9 + (bytes[6] ?? 0)];
  const size = sizes.find((length) => bytes.length >= length && crc16(bytes.subarray(0, length)) === 0);
  return size === undefined ? undefined : { size, code: bytes[1] };
}

function ascii(bytes: Buffer): Frame {
  const [text, hexadecimal] = /^:([0-9A-F]+)\r\n/.exec(bytes.toString("latin1")) ?? [];
  return text === undefined ? undefined : { size: text.length, code: Buffer.from(hexadecimal ?? "", "hex")[1] };
}

function mbap(bytes: Buffer): Frame {
  const size = bytes.length < 8 || bytes.readUInt16BE(2) !== 0 ? 0 : 6 + bytes.readUInt16BE(4);
  return size < 8 || size > bytes.length ? undefined : { size, code: bytes[7] };
}

/** The functions of all requests, if every byte belongs to one. */
function all(bytes: Buffer, first: (rest: Buffer) => Frame): readonly number[] | undefined {
  const functions: number[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const frame = first(rest);
    if (frame?.code === undefined) return undefined;
    functions.push(frame.code);
    rest = rest.subarray(frame.size);
  }
  return functions;
}

/** The functions of all requests that a client sent over one connection. Throws if a byte belongs to none. */
export function functionsIn(bytes: Buffer): readonly number[] {
  // Lines first: correct checksums identify them, while an address there may look like the protocol identifier of TCP.
  const functions = all(bytes, rtu) ?? all(bytes, ascii) ?? all(bytes, mbap);
  if (!functions) throw new Error(`no requests: ${bytes.toString("hex")}`);
  return functions;
}
