// Conversion of Sparkplug metrics to readings and descriptions for the matching tags.
import type { EpochMicros } from "../../../core/point.ts";
import type { ReadPlace } from "../../../core/reading.ts";
import type { Description, Quality, Reading } from "../../../core/source.ts";
import { defaultTimeRule } from "../../../lib/readings/device-time.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import { defined } from "../../../lib/values/defined.ts";
import type { Scalar } from "../decoders/payload.ts";
import { arrivalTaken, payloadTime } from "../decoders/payload-time.ts";
import type { MessageCounts } from "../reading/message-counts.ts";
import type { Route } from "../reading/topic-router.ts";
import { isInScope, type SparkplugTopic } from "../topics/sparkplug-topic.ts";
import type { EdgeNode, KnownMetric } from "./edge-node.ts";
import { elementsOf, firstArrayType, type SparkplugMetric, type SparkplugPayload, scalarOf } from "./payload.ts";

export interface ReadingSink {
  readonly readings: Reading[];
  readonly descriptions: Description[];
}

export interface SparkplugMessage {
  readonly topic: SparkplugTopic;
  readonly node: EdgeNode;
  readonly payload: SparkplugPayload;
  readonly routes: readonly Route[];
  readonly address: string;
  readonly time: EpochMicros;
  readonly sink: ReadingSink;
  readonly counts: MessageCounts;
  /** Remaining array elements that may be read from this message. */
  readonly room: { elements: number };
}

/** Most elements of all arrays in a message. A single bit may be an element, and each is a signal. */
export const maxElements = 100_000;

/** Whether a tag selects this metric: by its topic and by the name, a prefix with `*`, or no name. */
function wants({ tag, way }: Route, { name, device }: KnownMetric): boolean {
  if (!isInScope(way.address.scope, device)) return false;
  const { metric: pattern } = tag;
  if (pattern === undefined) return true;
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

const booleanType = 11;
const timeType = 13;
const templateType = 19;

/**
 * Whether a failure of the metric is one of an input of the tag. Of a template or an array, whose types are the highest,
 * only members and elements have inputs. Texts have one if the tag names them. Any other would fail for ever.
 */
function canFail(route: Route, known: KnownMetric): boolean {
  const { datatype } = known;
  if (datatype >= templateType || !wants(route, known)) return false;
  return route.tag.metric !== undefined || datatype <= booleanType || datatype === timeType;
}

/** Tag, captures and address of a metric. */
function placeOf({ id, way }: Route, { captures, address }: KnownMetric): ReadPlace {
  return { tag: id, captures: way.scoped?.(captures) ?? captures, address };
}

/** Adds the readings of one metric: its value, its array elements or its template members. A birth describes them. */
export function readMetric(arrival: SparkplugMessage, metric: SparkplugMetric, known: KnownMetric): void {
  const { node, topic } = arrival;
  if (topic.type.endsWith("BIRTH")) describeMetric(arrival, metric, known);
  if (metric.isTransient) return;
  const { value: raw } = metric;
  const datatype = metric.datatype ?? known.datatype;
  if (metric.isNull || raw === undefined) {
    push(arrival, metric, known, undefined);
    return;
  }
  if (typeof raw === "object" && !(raw instanceof Uint8Array)) {
    if (raw.isDefinition) return;
    const { Quality, quality } = metric.properties;
    for (const member of raw.metrics) {
      if (member.name === undefined) continue;
      const name = `${known.name}/${member.name}`;
      const inner = {
        ...member,
        timestamp: member.timestamp ?? metric.timestamp,
        isHistorical: member.isHistorical || metric.isHistorical,
        properties: { Quality, quality, ...member.properties },
      };
      readMetric(arrival, inner, node.declare(topic.device, name, undefined, member.datatype));
    }
    return;
  }
  const elements = elementsOf(raw, datatype, arrival.room.elements);
  if (elements) {
    arrival.room.elements -= elements.length;
    const type = datatype - firstArrayType + 1;
    for (const [i, element] of elements.entries())
      push(arrival, metric, node.declare(topic.device, `${known.name}/${i}`, undefined, type), element);
  } else push(arrival, metric, known, scalarOf(raw, datatype));
}

function push(arrival: SparkplugMessage, metric: SparkplugMetric, known: KnownMetric, value: Scalar | undefined): void {
  const { payload, node, routes, address, time: now, sink, counts } = arrival;
  const missing = metric.isNull || metric.value === undefined;
  // Files, data sets and similar types contain no number.
  if (value === undefined && !missing) {
    counts.unsupported++;
    return;
  }
  const code = metric.properties["Quality"] ?? metric.properties["quality"];
  const quality = qualityOf(code);
  for (const route of routes) {
    const { tag } = route;
    const rule = tag.time ?? defaultTimeRule;
    if (missing ? !canFail(route, known) : !wants(route, known)) continue;
    // Texts are only read by tags that name the metric.
    if (typeof value === "string" && tag.metric === undefined) continue;
    const timed = payloadTime(metric.timestamp ?? payload.timestamp, "unixMs", undefined, now, rule);
    // A missing timestamp is permitted here.
    const fault = typeof timed === "number" || timed.kind === "missing" ? undefined : timed;
    if (fault) counts.noteTimeFault(fault, address);
    if (fault && !fault.ahead && rule.unusable === "drop") continue;
    const unusable = missing ? "value is null" : quality === "good" ? undefined : `quality is ${String(code)}`;
    const reason = unusable ?? (fault && arrivalTaken(fault));
    sink.readings.push({
      ...placeOf(route, known),
      value,
      time: typeof timed === "number" ? timed : now,
      clock: typeof timed === "number" ? "device" : "agent",
      ...(fault?.ahead && { ahead: fault.ahead }),
      device: node.name,
      quality: missing ? "bad" : quality,
      ...(reason !== undefined && { reason }),
      historical: metric.isHistorical,
    });
  }
}

/** Marks these metrics as bad. A death carries the timestamp of the birth, so the time of arrival is used. */
export function markStale({ node, routes, time, sink }: SparkplugMessage, device: string, reason: string): void {
  for (const known of node.metrics(device))
    for (const route of routes)
      if (canFail(route, known)) sink.readings.push(badReading({ ...placeOf(route, known), time }, reason));
}

/** Property names in common use, in order of precedence. */
const unitNames = ["engUnit", "EngUnit", "Engineering Units", "engineeringUnits", "unit", "units"];
const textNames = ["Documentation", "documentation", "description", "Description", "tooltip"];
const lowNames = ["engLow", "EngLow", "Low", "min"];
const highNames = ["engHigh", "EngHigh", "High", "max"];

/** Adds unit, description and range from the properties of a birth. */
function describeMetric({ routes, sink }: SparkplugMessage, { properties }: SparkplugMetric, known: KnownMetric): void {
  const find = (names: readonly string[]) =>
    names.map((name) => properties[name]).find((value) => value !== undefined && value !== "");
  const text = (names: readonly string[]) => {
    const found = find(names);
    return typeof found === "string" ? found : undefined;
  };
  const [min, max] = [find(lowNames), find(highNames)];
  const range = typeof min === "number" && typeof max === "number" && min < max ? { min, max } : undefined;
  const signal = defined({ engUnit: text(unitNames), description: text(textNames) });
  if (Object.keys(signal).length === 0 && !range) return;
  for (const route of routes)
    if (wants(route, known)) sink.descriptions.push({ ...placeOf(route, known), signal, ...(range && { range }) });
}

/**
 * Quality codes up to 255 are those of OPC DA, whose two highest bits decide; 2 is Ignition's "write pending". Above
 * are the codes of Ignition: version 8 from 256, 512 and 768, version 7 from 300 to 501 and from 900.
 */
const ranges: readonly (readonly [from: number, to: number, quality: Quality])[] = [
  [2, 2, "good"],
  [0, 63, "bad"],
  [64, 127, "uncertain"],
  [192, 255, "good"],
  [256, 299, "uncertain"],
  // 500 is "stale" in the Sparkplug specification.
  [300, 1_023, "bad"],
];

/** Ignition 8 may send its native code, with the quality in the two highest of 32 bits. */
const byHighestBits: readonly Quality[] = ["good", "uncertain", "bad", "bad"];

/** The quality of a metric. Unknown codes count as good. */
export function qualityOf(code: unknown): Quality {
  if (typeof code !== "number" && typeof code !== "bigint") return "good";
  const number = Number(code);
  if (number >= 0 && number <= 0xffff)
    return ranges.find(([from, to]) => number >= from && number <= to)?.[2] ?? "good";
  return byHighestBits[(number | 0) >>> 30] ?? "good";
}
