// A Sparkplug B payload as objects, with the names of its protobuf definition. Pure.
import { inflateSync, unzipSync } from "node:zlib";
import { PayloadError } from "../decoders/payload.ts";
import { float32OfBits, float64OfBits, readFields, scalarOf } from "./wire.ts";

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
  readonly properties: Readonly<Record<string, number | bigint | boolean | string>>;
}

/** A value as it is on the wire: signed integers are still the unsigned ones they travel as. */
export type RawValue = number | bigint | boolean | string | Uint8Array | SparkplugTemplate;

export interface SparkplugTemplate {
  readonly isDefinition: boolean;
  readonly metrics: readonly SparkplugMetric[];
}

/** Templates may hold templates, but not for ever. */
const maxDepth = 8;

/** Throws `PayloadError` when it is none. `maxBytes`: how large a compressed one may be when it is inflated. */
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
    // Once: a payload that holds itself would be inflated for ever.
    if (isInflated) throw new PayloadError("is compressed twice");
    return decodeSparkplug(inflate(body, metrics, maxBytes), maxBytes, true);
  }
  return { timestamp, metrics, seq };
}

/** The metric `algorithm` says how; GZIP and DEFLATE are defined. */
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
  let name: string | undefined;
  let alias: number | bigint | undefined;
  let timestamp: number | undefined;
  let datatype: number | undefined;
  let isHistorical = false;
  let isTransient = false;
  let isNull = false;
  let raw: RawValue | undefined;
  let properties: SparkplugMetric["properties"] = {};
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) name = asText(value);
    else if (number === 2) alias = asInteger(value);
    else if (number === 3) timestamp = Number(asInteger(value));
    else if (number === 4) datatype = Number(asInteger(value));
    else if (number === 5) isHistorical = value === 1;
    else if (number === 6) isTransient = value === 1;
    else if (number === 7) isNull = value === 1;
    else if (number === 9) properties = decodeProperties(asBytes(value));
    else if (number === 10 || number === 11) raw = asInteger(value);
    else if (number === 12) raw = float32OfBits(Number(asInteger(value)));
    else if (number === 13) raw = float64OfBits(BigInt(asInteger(value)));
    else if (number === 14) raw = value === 1;
    else if (number === 15) raw = asText(value);
    // Bytes, or a data set, of which no datatype makes a number.
    else if (number === 16 || number === 17) raw = Uint8Array.from(asBytes(value));
    else if (number === 18) raw = decodeTemplate(asBytes(value), depth + 1);
  }
  return { name, alias, timestamp, datatype, isHistorical, isTransient, isNull, value: raw, properties };
}

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
  const values: (number | bigint | boolean | string | undefined)[] = [];
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) keys.push(asText(value));
    else if (number === 2) values.push(decodeProperty(asBytes(value)));
  }
  return Object.fromEntries(
    keys.flatMap((key, i) => {
      const value = values[i];
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

function decodeProperty(bytes: Uint8Array): number | bigint | boolean | string | undefined {
  let found: number | bigint | boolean | string | undefined;
  let datatype = 0;
  for (const { number, value } of readFields(bytes)) {
    if (number === 1) datatype = Number(asInteger(value));
    else if (number === 3 || number === 4) found = asInteger(value);
    else if (number === 5) found = float32OfBits(Number(asInteger(value)));
    else if (number === 6) found = float64OfBits(BigInt(asInteger(value)));
    else if (number === 7) found = value === 1;
    else if (number === 8) found = asText(value);
  }
  return found === undefined ? undefined : scalarOf(found, datatype);
}

function asBytes(value: number | bigint | Uint8Array): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw new PayloadError("is not Sparkplug B: a number where bytes should be");
}

function asInteger(value: number | bigint | Uint8Array): number | bigint {
  if (!(value instanceof Uint8Array)) return value;
  throw new PayloadError("is not Sparkplug B: bytes where a number should be");
}

function asText(value: number | bigint | Uint8Array): string {
  return Buffer.from(asBytes(value)).toString("utf8");
}
