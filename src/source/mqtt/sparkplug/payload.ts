// Decodes a Sparkplug B payload into objects with the names of its protobuf definition.
import { inflateSync, unzipSync } from "node:zlib";
import { PayloadError } from "../decoders/payload.ts";
import type { Scalar } from "../decoders/plain-value.ts";
import { readFields, scalarOf } from "./wire.ts";

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
export type RawValue = Scalar | Uint8Array | SparkplugTemplate;

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
