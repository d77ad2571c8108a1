// A passive Sparkplug host: keeps what births say, and turns the messages that follow them into readings.
//
// Births and data are QoS 0 and not kept by the broker, so after connecting nothing is known of a node until it is
// born again; the names of metrics, and often their types, are in the birth alone. Messages on different topics may
// overtake each other: what can be understood is read as it comes, and what cannot leads to a request for a birth.
import type { EpochMicros } from "../../../core/point.ts";
import type { Description, Reading } from "../../../core/source.ts";
import type { Message } from "../client.ts";
import type { MessageCounts } from "../message-counts.ts";
import { payloadTime } from "../payload-time.ts";
import type { Route } from "../topic-router.ts";
import { elementsOf, type Scalar, scalarOf } from "./datatype.ts";
import { describeMetric } from "./description.ts";
import { EdgeNode, type KnownMetric } from "./edge-node.ts";
import { decodeSparkplug, type SparkplugMetric, type SparkplugPayload } from "./payload.ts";
import type { RebirthRequests } from "./rebirth.ts";
import { parseSparkplugTopic, type SparkplugTopic } from "./topic.ts";

export interface SparkplugParts {
  readonly maxPayload: number;
  readonly rebirths: RebirthRequests;
  readonly counts: MessageCounts;
  /** Milliseconds, never backwards. */
  readonly monotonic: () => number;
}

/** Where readings and descriptions go. */
export interface Sink {
  readonly readings: Reading[];
  readonly descriptions: Description[];
}

/** Milliseconds that a message may be overtaken by others before it counts as lost. */
const reorderMs = 2_000;
/** Edge nodes that are remembered; a group with more is beyond one broker. */
const maxNodes = 10_000;

/** One message on its way. */
interface Arrival {
  readonly topic: SparkplugTopic;
  readonly node: EdgeNode;
  readonly payload: SparkplugPayload;
  readonly routes: readonly Route[];
  readonly address: string;
  readonly time: EpochMicros;
  readonly sink: Sink;
}

export class SparkplugHost {
  readonly #parts: SparkplugParts;
  readonly #nodes = new Map<string, EdgeNode>();

  constructor(parts: SparkplugParts) {
    this.#parts = parts;
  }

  /** Adds what the message says to `sink`. Throws `PayloadError` when it is no Sparkplug message. */
  read(routes: readonly Route[], { topic: address, payload }: Message, time: EpochMicros, sink: Sink): void {
    const topic = parseSparkplugTopic(address);
    // STATE, commands and other namespaces are none of ours.
    if (!topic) return;
    const { group, node: name, type } = topic;
    const key = `${group}/${name}`;
    const node = this.#nodes.get(key) ?? new EdgeNode(group, name);
    if (this.#nodes.size < maxNodes) this.#nodes.set(key, node);
    const decoded = decodeSparkplug(payload, this.#parts.maxPayload);
    const arrival = { topic, node, payload: decoded, routes, address, time, sink };
    switch (type) {
      case "NBIRTH":
        node.begin(bdSeqOf(decoded), decoded.seq);
        this.#birth(arrival);
        return;
      case "NDEATH":
        this.#nodeDeath(arrival);
        return;
      case "DBIRTH":
        this.#follow(arrival);
        this.#birth(arrival);
        return;
      case "DDEATH":
        this.#follow(arrival);
        markStale(arrival, topic.device, `device ${topic.device} is offline`);
        return;
      case "NDATA":
      case "DDATA":
        this.#follow(arrival);
        this.#data(arrival);
        return;
    }
  }

  #follow({ node, payload, time }: Arrival): void {
    const now = this.#parts.monotonic();
    if (payload.seq !== undefined) node.follow(payload.seq, now);
    if (node.lostSince(now, reorderMs)) this.#ask(node, time);
  }

  #birth(arrival: Arrival): void {
    const { node, topic, payload, routes, sink } = arrival;
    for (const metric of payload.metrics) {
      const { name, alias, datatype = 0 } = metric;
      if (name === undefined || isControl(name)) continue;
      const known = node.declare(topic.device, name, alias, datatype);
      const described = describeMetric(metric);
      if (described)
        for (const { id, tag } of routes)
          if (wants(tag.metric, name)) sink.descriptions.push({ tag: id, captures: known.captures, ...described });
      readMetric(arrival, metric, known);
    }
  }

  #data(arrival: Arrival): void {
    const { node, topic, payload, time } = arrival;
    let unknown = !node.born;
    for (const metric of payload.metrics) {
      if (metric.name !== undefined && isControl(metric.name)) continue;
      const known = node.find(topic.device, metric.name, metric.alias) ?? named(node, topic.device, metric);
      if (known) readMetric(arrival, metric, known);
      else {
        unknown = true;
        this.#parts.counts.unknownMetrics++;
      }
    }
    if (unknown) this.#ask(node, time);
  }

  /**
   * A death that a later birth has overtaken is that of an earlier life. One of a later life is honoured: we may have
   * missed its birth, and there are nodes that count on before they say goodbye.
   */
  #nodeDeath(arrival: Arrival): void {
    const { node, topic, payload } = arrival;
    const bdSeq = bdSeqOf(payload);
    const ahead = bdSeq === undefined || node.bdSeq === undefined ? 0 : (node.bdSeq - bdSeq) & 0xff;
    if (ahead > 0 && ahead < 128) return;
    node.end();
    markStale(arrival, "", `edge node ${topic.node} is offline`);
  }

  #ask({ group, node }: EdgeNode, now: EpochMicros): void {
    if (this.#parts.rebirths.ask(group, node, this.#parts.monotonic(), now)) this.#parts.counts.rebirths++;
  }
}

/** Data that names its metric and its type needs no birth. */
function named(node: EdgeNode, device: string, { name, alias, datatype }: SparkplugMetric): KnownMetric | undefined {
  return name === undefined || datatype === undefined ? undefined : node.declare(device, name, alias, datatype);
}

function bdSeqOf({ metrics }: SparkplugPayload): number | undefined {
  const value = metrics.find(({ name }) => name === "bdSeq")?.value;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

/** Metrics that serve the protocol itself. */
function isControl(name: string): boolean {
  return name === "bdSeq" || /^(?:Node Control|Device Control|Node Info)\//.test(name);
}

/** Whether a tag asks for this metric: it names it, or its beginning with a `*` behind it, or nothing. */
function wants(pattern: string | undefined, name: string): boolean {
  if (pattern === undefined) return true;
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function readMetric(arrival: Arrival, metric: SparkplugMetric, known: KnownMetric): void {
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
  const elements = elementsOf(raw, datatype);
  if (elements)
    for (const [i, element] of elements.entries())
      push(arrival, metric, node.declare(topic.device, `${known.name}/${i}`, undefined, datatype), element);
  else push(arrival, metric, known, scalarOf(raw, datatype));
}

function push(arrival: Arrival, metric: SparkplugMetric, known: KnownMetric, value: Scalar | undefined): void {
  const { payload, routes, address, time: now, sink } = arrival;
  const missing = metric.isNull || metric.value === undefined;
  // Files, data sets and the like have no number in them.
  if (value === undefined && !missing) return;
  const timed = payloadTime(metric.timestamp ?? payload.timestamp, "unixMs", undefined, now);
  const place = {
    captures: known.captures,
    address: `${address} ${known.name}`,
    time: timed ?? now,
    clock: timed === undefined ? ("agent" as const) : ("device" as const),
    historical: metric.isHistorical,
  };
  const quality = metric.properties["Quality"] ?? metric.properties["quality"];
  for (const { id, tag } of routes) {
    // A text is a value only to a tag that asked for this metric.
    if (!wants(tag.metric, known.name) || (typeof value === "string" && tag.metric === undefined)) continue;
    if (missing) sink.readings.push({ ...place, tag: id, value: undefined, quality: "bad", reason: "value is null" });
    else if (quality === 0 || quality === 500)
      sink.readings.push({ ...place, tag: id, value, quality: "bad", reason: `quality is ${quality}` });
    else sink.readings.push({ ...place, tag: id, value, quality: "good" });
  }
}

/** What was last heard of these metrics is no longer so. The time in a death is that of a birth, so ours is taken. */
function markStale({ node, routes, address, time, sink }: Arrival, device: string, reason: string): void {
  for (const { name, captures } of node.metrics(device))
    for (const { id, tag } of routes)
      if (wants(tag.metric, name))
        sink.readings.push({
          tag: id,
          captures,
          address: `${address} ${name}`,
          value: undefined,
          time,
          clock: "agent",
          quality: "bad",
          reason,
          historical: false,
        });
}
