// From the metrics of a Sparkplug message to readings and descriptions of the tags that want them.
import type { EpochMicros } from "../../../core/point.ts";
import type { Description, Quality, Reading } from "../../../core/source.ts";
import { defaultTimeRule } from "../../../lib/device-time.ts";
import { badReading } from "../connection/message.ts";
import { arrivalTaken, payloadTime } from "../decoders/payload-time.ts";
import type { Scalar } from "../decoders/plain-value.ts";
import type { MessageCounts } from "../reading/message-counts.ts";
import type { Route } from "../reading/topic-router.ts";
import { isInScope, type SparkplugTopic } from "../topics/sparkplug-topic.ts";
import type { EdgeNode, KnownMetric } from "./edge-node.ts";
import type { SparkplugMetric, SparkplugPayload } from "./payload.ts";
import { elementsOf, scalarOf } from "./wire.ts";

/** Where readings and descriptions go. */
export interface ReadingSink {
  readonly readings: Reading[];
  readonly descriptions: Description[];
}

/** One message on its way. */
export interface SparkplugMessage {
  readonly topic: SparkplugTopic;
  readonly node: EdgeNode;
  readonly payload: SparkplugPayload;
  readonly routes: readonly Route[];
  /** The topic as text. */
  readonly address: string;
  readonly time: EpochMicros;
  readonly sink: ReadingSink;
  readonly counts: MessageCounts;
  /** What the elements of arrays may still be of this message. */
  readonly room: { elements: number };
}

/** Elements of all arrays of one message: a bit may make one, and each is a signal. */
export const maxElements = 100_000;

/** Whether a tag asks for this metric: its topic means the device, and it names it, its beginning and a `*`, or nothing. */
function wants({ tag, way }: Route, { name, device }: KnownMetric): boolean {
  if (!isInScope(way.address.scope, device)) return false;
  const { metric: pattern } = tag;
  if (pattern === undefined) return true;
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

/** A metric as what fills `input` and `signal` of a tag. */
function placeOf(
  { id, way }: Route,
  { captures, address }: KnownMetric,
): Pick<Reading, "tag" | "captures" | "address"> {
  return { tag: id, captures: way.scoped?.of(captures) ?? captures, address };
}

/** Adds the readings of one metric: its value, those of its elements or of the members of its template. */
export function readMetric(arrival: SparkplugMessage, metric: SparkplugMetric, known: KnownMetric): void {
  if (metric.isTransient) return;
  const { node, topic } = arrival;
  const { value: raw } = metric;
  const datatype = metric.datatype ?? known.datatype;
  if (metric.isNull || raw === undefined) {
    push(arrival, metric, known, undefined);
    return;
  }
  if (typeof raw === "object" && !(raw instanceof Uint8Array)) {
    if (raw.isDefinition) return;
    for (const member of raw.metrics) {
      if (member.name === undefined) continue;
      const name = `${known.name}/${member.name}`;
      const inner = { ...member, timestamp: member.timestamp ?? metric.timestamp };
      readMetric(arrival, inner, node.declare(topic.device, name, undefined, member.datatype ?? 0));
    }
    return;
  }
  const elements = elementsOf(raw, datatype, arrival.room.elements);
  if (elements) {
    arrival.room.elements -= elements.length;
    for (const [i, element] of elements.entries())
      push(arrival, metric, node.declare(topic.device, `${known.name}/${i}`, undefined, datatype), element);
  } else push(arrival, metric, known, scalarOf(raw, datatype));
}

function push(arrival: SparkplugMessage, metric: SparkplugMetric, known: KnownMetric, value: Scalar | undefined): void {
  const { payload, node, routes, address, time: now, sink, counts } = arrival;
  const missing = metric.isNull || metric.value === undefined;
  // Files, data sets and the like have no number in them.
  if (value === undefined && !missing) {
    counts.unsupported++;
    return;
  }
  const code = metric.properties["Quality"] ?? metric.properties["quality"];
  const quality = qualityOf(code);
  for (const route of routes) {
    const { tag } = route;
    const rule = tag.time ?? defaultTimeRule;
    // A text is a value only to a tag that asked for this metric.
    if (!wants(route, known) || (typeof value === "string" && tag.metric === undefined)) continue;
    const timed = payloadTime(metric.timestamp ?? payload.timestamp, "unixMs", undefined, now, rule);
    // To say no time is allowed here.
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

/** What was last heard of these metrics is no longer so. The time in a death is that of a birth, so ours is taken. */
export function markStale({ node, routes, time, sink }: SparkplugMessage, device: string, reason: string): void {
  for (const known of node.metrics(device))
    for (const route of routes)
      if (wants(route, known)) sink.readings.push(badReading({ ...placeOf(route, known), time }, reason));
}

/** Names that edge nodes use for the same thing, in the order they are believed. */
const unitNames = ["engUnit", "EngUnit", "Engineering Units", "engineeringUnits", "unit", "units"];
const textNames = ["Documentation", "documentation", "description", "Description", "tooltip"];
const lowNames = ["engLow", "EngLow", "Low", "min"];
const highNames = ["engHigh", "EngHigh", "High", "max"];

/** Adds unit, description and range, as far as the properties of a birth say. */
export function describeMetric(
  { routes, sink }: SparkplugMessage,
  { properties }: SparkplugMetric,
  known: KnownMetric,
): void {
  const find = (names: readonly string[]) =>
    names.map((name) => properties[name]).find((value) => value !== undefined && value !== "");
  const engUnit = find(unitNames);
  const description = find(textNames);
  const min = find(lowNames);
  const max = find(highNames);
  const range = typeof min === "number" && typeof max === "number" && min < max ? { min, max } : undefined;
  const signal = {
    ...(typeof engUnit === "string" && { engUnit }),
    ...(typeof description === "string" && { description }),
  };
  if (Object.keys(signal).length === 0 && !range) return;
  for (const route of routes)
    if (wants(route, known)) sink.descriptions.push({ ...placeOf(route, known), signal, ...(range && { range }) });
}

/**
 * Up to 255 the quality of OPC DA, whose two highest bits tell; 2 is Ignition's "write pending". Above it the codes of
 * Ignition: those of version 8 from 256, 512 and 768, those of version 7 from 300 to 501 and from 900.
 */
const ranges: readonly (readonly [from: number, to: number, quality: Quality])[] = [
  [2, 2, "good"],
  [0, 63, "bad"],
  [64, 127, "uncertain"],
  [192, 255, "good"],
  [256, 299, "uncertain"],
  // 500 is "stale", which the specification names.
  [300, 1_023, "bad"],
];

/** Ignition 8 may give a code as it has it: the quality in the two highest of 32 bits. */
const byHighestBits: readonly Quality[] = ["good", "uncertain", "bad", "bad"];

/** The quality of a metric; a code that means nothing says nothing against the value. */
export function qualityOf(code: unknown): Quality {
  if (typeof code !== "number" && typeof code !== "bigint") return "good";
  const number = Number(code);
  if (number >= 0 && number <= 0xffff)
    return ranges.find(([from, to]) => number >= from && number <= to)?.[2] ?? "good";
  return byHighestBits[(number | 0) >>> 30] ?? "good";
}
