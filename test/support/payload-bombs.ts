// Run as a worker with little memory: decodes payloads of 1 MiB in turn that announce or contain as much as possible.

import { epochMicros } from "../../src/core/point.ts";
import { type DecoderName, DecoderTable } from "../../src/source/mqtt/decoders/decoder.ts";
import { PayloadError } from "../../src/source/mqtt/decoders/payload.ts";
import { decodeSparkplug } from "../../src/source/mqtt/sparkplug/payload.ts";

const size = 2 ** 20;
const bytes = (...start: number[]) => Buffer.from(start);
const filled = (start: Buffer, unit: string | Buffer, end = "") =>
  Buffer.concat([start, Buffer.alloc(size - start.length - end.length, unit), Buffer.from(end)]);
const long = [0x80, 0, 0, 0];

const payloads: readonly (readonly [DecoderName | "sparkplug", string, Buffer])[] = [
  ["cbor", "array of 2^31 elements", bytes(0x9a, ...long)],
  ["cbor", "array of 2^64 elements", bytes(0x9b, ...Array.from({ length: 8 }, () => 0xff))],
  ["cbor", "map of 2^31 members", bytes(0xba, ...long)],
  ["cbor", "text of 2 GiB", bytes(0x7a, ...long)],
  ["cbor", "arrays in arrays", filled(bytes(), bytes(0x81))],
  ["cbor", "endless arrays in endless arrays", filled(bytes(), bytes(0x9f))],
  ["cbor", "tags of tags", filled(bytes(), bytes(0xc1))],
  ["cbor", "empty maps", filled(bytes(0x9f), bytes(0xa0), "\xff")],
  ["cbor", "parts of a text", filled(bytes(0x7f), bytes(0x60), "\xff")],
  ["msgpack", "array of 2^31 elements", bytes(0xdd, ...long)],
  ["msgpack", "map of 2^31 members", bytes(0xdf, ...long)],
  ["msgpack", "bytes of 2 GiB", bytes(0xc6, ...long)],
  ["msgpack", "arrays in arrays", filled(bytes(), bytes(0x91))],
  ["msgpack", "empty maps", filled(bytes(0xdd, 0, 0xf, 0xff, 0xfb), bytes(0x80))],
  ["json", "arrays in arrays", filled(bytes(), "[")],
  ["json", "arrays in arrays that end", Buffer.from(`${"[".repeat(size / 2)}${"]".repeat(size / 2)}`)],
  ["json", "maps in maps", filled(bytes(), '{"a":')],
  ["json", "empty maps", filled(Buffer.from("["), "{},", "{}]")],
  [
    "json",
    "many members",
    Buffer.from(JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [i.toString(36), 0])))),
  ],
  ["ndjson", "empty maps", filled(bytes(), "{}")],
  ["ndjson", "arrays in arrays", filled(bytes(), "[")],
  ["ndjson", "malformed lines", filled(bytes(), "}\n")],
  ["csv", "malformed cells", filled(bytes(), '""x,')],
  ["lineProtocol", "malformed lines", filled(bytes(), "a\n")],
  ["csv", "empty cells", filled(bytes(), ",")],
  ["csv", "empty rows", filled(bytes(), ";\n")],
  ["lineProtocol", "short lines", filled(bytes(), "a b=1\n")],
  ["senml", "empty records", filled(Buffer.from("["), "{},", "{}]")],
  ["senml", "short records", filled(Buffer.from("["), '{"v":1},', "{}]")],
  ["sparkplug", "empty metrics", filled(bytes(), bytes(0x12, 0))],
  ["sparkplug", "bytes of 2 GiB", bytes(0x12, 0x80, 0x80, 0x80, 0x80, 0x08)],
];

const table = new DecoderTable();
const given = { csv: { separator: ",", header: false }, decimal: ".", compression: "none", lenient: false } as const;
for (const [decoder, what, payload] of payloads)
  try {
    if (decoder === "sparkplug") decodeSparkplug(payload, size);
    else table.get(decoder, given, size)(payload, epochMicros(0));
  } catch (error) {
    if (!(error instanceof PayloadError)) throw new Error(`${decoder}, ${what}`, { cause: error });
  }
