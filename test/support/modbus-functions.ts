// Reads what a Modbus client sent, whatever it is that it asked for.
import { crc16 } from "../../src/source/modbus/connection/bus-codec.ts";

/** The request that bytes begin with: its length with all that is around it, and its function; undefined: none does. */
type Frame = { readonly size: number; readonly code: number | undefined } | undefined;

/** Lengths on a line: of functions 17, 43/14, those that read or write one value; those that write several say it themselves. */
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

/** The functions of all requests, where every byte belongs to one. */
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

/** The function of every request in what a client sent over one connection; throws where a byte belongs to none. */
export function functionsIn(bytes: Buffer): readonly number[] {
  // Where every checksum is right, it is a line: the address of a request there may look like a protocol identifier.
  const functions = all(bytes, rtu) ?? all(bytes, ascii) ?? all(bytes, mbap);
  if (!functions) throw new Error(`no requests: ${bytes.toString("hex")}`);
  return functions;
}
