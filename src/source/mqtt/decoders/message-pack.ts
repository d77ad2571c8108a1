// Documents in MessagePack. Bytes and extensions stay bytes, for `bytes` of a tag; timestamps are nanoseconds since 1970.
import { DocumentReader } from "./byte-reader.ts";

/** The extension that is a timestamp. */
const timestamp = -1;

/** The document. Throws `PayloadError`. */
export function messagePackDocument(payload: Uint8Array): unknown {
  const reader = new DocumentReader("MessagePack", payload);
  const document = item(reader);
  if (reader.left > 0) throw reader.wrong(`${reader.left} bytes behind its end`);
  return document;
}

function item(reader: DocumentReader): unknown {
  const code = Number(reader.unsigned(1));
  const next = () => item(reader);
  if (code < 0x80) return code;
  if (code < 0x90) return reader.map(code & 0x0f, next);
  if (code < 0xa0) return reader.list(code & 0x0f, next);
  if (code < 0xc0) return reader.text(code & 0x1f);
  if (code >= 0xe0) return code - 0x1_00;
  switch (code) {
    case 0xc0:
      return null;
    case 0xc2:
    case 0xc3:
      return code === 0xc3;
    case 0xc4:
    case 0xc5:
    case 0xc6:
      return reader.bytes(reader.unsigned(width(code - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9:
      return extension(reader, reader.unsigned(width(code - 0xc7)));
    case 0xca:
      return reader.float(4);
    case 0xcb:
      return reader.float(8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return reader.unsigned(width(code - 0xcc));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
      return reader.signed(width(code - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
      return extension(reader, 2 ** (code - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
      return reader.text(reader.unsigned(width(code - 0xd9)));
    case 0xdc:
    case 0xdd:
      return reader.list(reader.unsigned(width(code - 0xdb)), next);
    case 0xde:
    case 0xdf:
      return reader.map(reader.unsigned(width(code - 0xdd)), next);
    default:
      throw reader.wrong("a type that means nothing");
  }
}

function width(power: number): 1 | 2 | 4 | 8 {
  return ([1, 2, 4, 8] as const)[power] ?? 8;
}

function extension(reader: DocumentReader, length: number | bigint): unknown {
  const type = reader.signed(1);
  if (type !== timestamp) return reader.bytes(length);
  if (Number(length) === 4) return BigInt(reader.unsigned(4)) * 1_000_000_000n;
  if (Number(length) === 8) {
    const both = BigInt(reader.unsigned(8));
    return (both & 0x3_ffff_ffffn) * 1_000_000_000n + (both >> 34n);
  }
  if (Number(length) !== 12) throw reader.wrong(`a time of ${length} bytes`);
  const nanoseconds = BigInt(reader.unsigned(4));
  return BigInt(reader.signed(8)) * 1_000_000_000n + nanoseconds;
}
