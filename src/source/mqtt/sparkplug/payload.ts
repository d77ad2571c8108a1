// Decodes a Sparkplug B payload into objects with the names of its protobuf definition, and values by their datatype.
import { inflateSync, unzipSync } from "node:zlib";
import { narrow } from "../../../lib/values/decimal-text.ts";
import { DocumentReader } from "../decoders/binary-documents.ts";
import { PayloadError, type Scalar } from "../decoders/payload.ts";
import { type NumberType, numberTypes } from "../decoders/struct.ts";

export interface SparkplugPayload {
  /** Milliseconds since 1970. */
  readonly timestamp: number | undefined;
  readonly metrics: readonly SparkplugMetric[];
  readonly seq: number | undefined;
}

export interface SparkplugMetric {
  readonly name: string | undefined;
  readonly alias: number | bigint | undefined;
  /** Milliseconds since 1970. */
  readonly timestamp: number | undefined;
  readonly datatype: number | undefined;
  readonly isHistorical: boolean;
  readonly isTransient: boolean;
  readonly isNull: boolean;
  readonly value: RawValue | undefined;
  readonly properties: Readonly<Record<string, Scalar | undefined>>;
}

/** A value as transmitted; signed integers are still in their unsigned form. */
type RawValue = Scalar | Uint8Array | SparkplugTemplate;

export interface SparkplugTemplate {
  readonly isDefinition: boolean;
  readonly metrics: readonly SparkplugMetric[];
}

const maxDepth = 8;

/** Decodes a payload. Throws `PayloadError` if it is invalid. `maxBytes`: largest decompressed size. */
export function decodeSparkplug(bytes: Uint8Array, maxBytes: number, isInflated = false): SparkplugPayload {
  let timestamp: number | undefined;
  let seq: number | undefined;
  let uuid = "";
  let body: Uint8Array | undefined;
  const metrics: SparkplugMetric[] = [];
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) timestamp = Number(value);
    else if (number === 2) metrics.push(decodeMetric(asBytes(value), 0));
    else if (number === 3) seq = Number(value);
    else if (number === 4) uuid = asText(value);
    else if (number === 5) body = asBytes(value);
  }
  if (uuid === "SPBV1.0_COMPRESSED" && body) {
    // Decompresses once only, since a payload that contains itself would recurse for ever.
    if (isInflated) throw new PayloadError("is compressed twice");
    return decodeSparkplug(inflate(body, metrics, maxBytes), maxBytes, true);
  }
  return { timestamp, metrics, seq };
}

/** The metric `algorithm` selects GZIP or DEFLATE. */
function inflate(body: Uint8Array, metrics: readonly SparkplugMetric[], maxBytes: number): Uint8Array {
  const algorithm = metrics.find(({ name }) => name === "algorithm")?.value ?? "DEFLATE";
  try {
    const unpack = algorithm === "GZIP" ? unzipSync : inflateSync;
    return unpack(body, { maxOutputLength: maxBytes });
  } catch (error) {
    throw new PayloadError(`is compressed and cannot be inflated`, { cause: error });
  }
}

function decodeMetric(bytes: Uint8Array, depth: number): SparkplugMetric {
  const metric: Writable<SparkplugMetric> = {
    name: undefined,
    alias: undefined,
    timestamp: undefined,
    datatype: undefined,
    isHistorical: false,
    isTransient: false,
    isNull: false,
    value: undefined,
    properties: {},
  };
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) metric.name = asText(value);
    else if (number === 2) metric.alias = asNumber(value);
    else if (number === 3) metric.timestamp = Number(asNumber(value));
    else if (number === 4) metric.datatype = Number(asNumber(value));
    else if (number === 5) metric.isHistorical = value === 1;
    else if (number === 6) metric.isTransient = value === 1;
    else if (number === 7) metric.isNull = value === 1;
    else if (number === 9) metric.properties = decodeProperties(asBytes(value));
    else if (number >= 10 && number <= 13) metric.value = asNumber(value);
    else if (number === 14) metric.value = value === 1;
    else if (number === 15) metric.value = asText(value);
    // Bytes or a data set, which no datatype converts to a number.
    else if (number === 16 || number === 17) metric.value = Uint8Array.from(asBytes(value));
    else if (number === 18) metric.value = decodeTemplate(asBytes(value), depth + 1);
  }
  return metric;
}

type Writable<T> = { -readonly [Name in keyof T]: T[Name] };

function decodeTemplate(bytes: Uint8Array, depth: number): SparkplugTemplate {
  if (depth > maxDepth) throw new PayloadError(`has templates nested deeper than ${maxDepth} levels`);
  const metrics: SparkplugMetric[] = [];
  let isDefinition = false;
  for (const { number, value } of readFields(bytes)) {
    if (number === 2) metrics.push(decodeMetric(asBytes(value), depth));
    else if (number === 5) isDefinition = value === 1;
  }
  return { isDefinition, metrics };
}

function decodeProperties(bytes: Uint8Array): SparkplugMetric["properties"] {
  const keys: string[] = [];
  const values: (Scalar | undefined)[] = [];
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) keys.push(asText(value));
    else if (number === 2) values.push(decodeProperty(asBytes(value)));
  }
  return Object.fromEntries(keys.map((key, i) => [key, values[i]]));
}

function decodeProperty(bytes: Uint8Array): Scalar | undefined {
  let found: Scalar | undefined;
  let datatype = 0;
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) datatype = Number(asNumber(value));
    else if (number >= 3 && number <= 6) found = asNumber(value);
    else if (number === 7) found = value === 1;
    else if (number === 8) found = asText(value);
  }
  return found === undefined ? undefined : scalarOf(found, datatype);
}

function asBytes(value: number | bigint | Uint8Array): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new PayloadError("is not Sparkplug B: a number where bytes should be");
}

function asNumber(value: number | bigint | Uint8Array): number | bigint {
  if (!(value instanceof Uint8Array)) return value;
  throw new PayloadError("is not Sparkplug B: bytes where a number should be");
}

function asText(value: number | bigint | Uint8Array): string {
  return Buffer.from(asBytes(value)).toString("utf8");
}

// The required part of the Protocol Buffers wire format.

/** A field: a number for varints and fixed widths, bytes for length-delimited types. */
interface Field {
  readonly number: number;
  /** Integers beyond 2^53 are bigints. Fixed widths are floats, as the shortest decimal: 0.1. */
  readonly value: number | bigint | Uint8Array;
}

/** Yields fields in order. Throws `PayloadError` if the bytes are not a valid message. */
function* readFields(bytes: Uint8Array): Generator<Field> {
  const reader = new DocumentReader("Sparkplug B", bytes);
  const varint = (): number | bigint => {
    let small = 0;
    for (let i = 0; i < 7; i++) {
      const byte = reader.byte();
      small += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return small;
    }
    let large = BigInt(small);
    for (let i = 7n; i < 10n; i++) {
      const byte = reader.byte();
      large |= BigInt(byte & 0x7f) << (7n * i);
      if (byte < 0x80) return narrow(BigInt.asUintN(64, large));
    }
    throw reader.wrong("a number has too many bytes");
  };
  while (reader.left > 0) {
    const key = Number(varint());
    const kind = key % 8;
    const number = Math.floor(key / 8);
    if (kind === 0) yield { number, value: varint() };
    else if (kind === 1) yield { number, value: reader.number("f64", true) };
    else if (kind === 2) yield { number, value: reader.bytes(varint()) };
    else if (kind === 5) yield { number, value: reader.number("f32", true) };
    else throw reader.wrong("unknown kind of field");
  }
}

/** Width of signed integers by datatype. They are sent as unsigned integers of that width or more. */
const signedBits: Readonly<Record<number, number>> = { 1: 8, 2: 16, 3: 32, 4: 64 };
/** The first datatype of arrays. They follow the order of those of their elements, the first of which is 1. */
export const firstArrayType = 22;
const elementTypes: readonly NumberType[] = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f32", "f64"];
const booleanArray = 32;
const timeArray = 34;

/** The number or text. Undefined for files, data sets, templates and arrays. */
export function scalarOf(raw: Scalar | object, datatype: number): Scalar | undefined {
  if (typeof raw === "object") return undefined;
  const bits = signedBits[datatype];
  if (bits === undefined || (typeof raw !== "number" && typeof raw !== "bigint")) return raw;
  return Number.isInteger(Number(raw)) ? narrow(BigInt.asIntN(bits, BigInt(raw))) : raw;
}

/** Most elements of an array, the same limit as for `[*]` in JSON. */
const maxElements = 10_000;

/** Elements of a numeric or boolean array. Undefined: another datatype, or more than 10,000 or `most` elements. */
export function elementsOf(raw: Scalar | object, datatype: number, most: number): readonly Scalar[] | undefined {
  if (!(raw instanceof Uint8Array)) return undefined;
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  const bound = Math.min(most, maxElements);
  if (datatype === booleanArray) return booleans(raw, view, bound);
  const type = datatype === timeArray ? "u64" : elementTypes[datatype - firstArrayType];
  if (type === undefined) return undefined;
  const { bytes, read } = numberTypes[type];
  if (raw.length / bytes > bound) return undefined;
  return Array.from({ length: Math.floor(raw.length / bytes) }, (_, i) => read(view, i * bytes, true));
}

/** A 32-bit count, followed by the booleans, most significant bit first. */
function booleans(raw: Uint8Array, view: DataView, most: number): readonly boolean[] | undefined {
  if (raw.length < 4) return undefined;
  const count = Math.min(view.getUint32(0, true), (raw.length - 4) * 8);
  if (count > most) return undefined;
  return Array.from({ length: count }, (_, i) => (((raw[4 + (i >> 3)] ?? 0) >> (7 - (i & 7))) & 1) === 1);
}
