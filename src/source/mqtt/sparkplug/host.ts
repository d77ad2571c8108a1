// A passive Sparkplug host: stores the births, and converts subsequent messages to readings.
//
// Births and data have QoS 0 and are not retained. After connecting, nothing is known of a node until its next birth.
// Only the birth contains the names of metrics, and often only it contains their types. Messages on different topics
// may arrive out of order. A message that is ahead waits briefly for the missing ones. After that it is read as far as
// possible, and a rebirth is requested.
import type { EpochMicros } from "../../../core/point.ts";
import type { Message } from "../connection/packet-reader.ts";
import type { MessageCounts } from "../reading/message-counts.ts";
import type { Route } from "../reading/topic-router.ts";
import { isHostTopic, parseSparkplugTopic, type SparkplugTopic } from "../topics/sparkplug-topic.ts";
import { maxTopic } from "../topics/topic-trie.ts";
import {
  EdgeNode,
  type KnownMetric,
  type MetricRoom,
  type RebirthRequests,
  Sequence,
  type Waiting,
} from "./edge-node.ts";
import { markStale, maxElements, type ReadingSink, readMetric, type SparkplugMessage } from "./metric-readings.ts";
import { decodeSparkplug, type SparkplugMetric, type SparkplugPayload } from "./payload.ts";

interface SparkplugParts {
  readonly maxPayload: number;
  readonly rebirths: RebirthRequests;
  readonly counts: MessageCounts;
  /** Monotonic milliseconds. */
  readonly monotonic: () => number;
}

/** How long a message waits for an earlier one before that one counts as lost, in milliseconds. */
const reorderMs = 2_000;
/** Most bytes of waiting messages of all nodes. Above that, messages are read at once. */
const maxWaitingBytes = 16 * 2 ** 20;
/** Weight of an array element in bytes, since each becomes a reading. */
const elementBytes = 100;
/** Most known edge nodes; a larger group exceeds the capacity of a broker. */
const maxNodes = 10_000;
/** Memory for the metrics of all nodes, in characters: some 400,000 metrics with usual names. */
const metricRoom = 100_000_000;

interface Held extends Pick<SparkplugMessage, "topic" | "routes" | "address" | "time"> {
  readonly payload: Buffer;
  /** Its share of `maxWaitingBytes`. */
  readonly weight: number;
}

/** An edge node and its waiting messages. Undefined: the message was read, but its number waits its turn. */
interface Member {
  readonly node: EdgeNode;
  readonly sequence: Sequence<Held | undefined>;
}

export class SparkplugHost {
  readonly #parts: SparkplugParts;
  readonly #members = new Map<string, Member>();
  readonly #waiting = new Set<Member>();
  #waitingBytes = 0;
  readonly #room: MetricRoom = { characters: metricRoom };

  constructor(parts: SparkplugParts) {
    this.#parts = parts;
  }

  /**
   * Adds the readings of the message, and of those that waited for it, to `sink`. False: the topic is not one of an
   * edge node's data. Throws `PayloadError` if the payload is invalid.
   */
  read(routes: readonly Route[], message: Message, time: EpochMicros, sink: ReadingSink): boolean {
    const { topic: address } = message;
    const topic = parseSparkplugTopic(address);
    if (!topic) return isHostTopic(address);
    const payload = decodeSparkplug(message.payload, this.#parts.maxPayload);
    const member = this.#memberOf(topic);
    const { node, sequence } = member;
    const { counts } = this.#parts;
    const room = { elements: maxElements };
    const arrival = { topic, node, payload, routes, address, time, sink, counts, room };
    this.#abandonGap(member, reorderMs, time, sink);
    if (topic.type === "NBIRTH") {
      this.#release(sequence.begin(payload.seq), member, sink);
      node.begin(bdSeqOf(payload));
      this.#birth(arrival);
    } else if (topic.type === "NDEATH") this.#nodeDeath(arrival, member);
    else {
      const opens = topic.type === "DBIRTH";
      const seq = payload.seq === undefined ? undefined : payload.seq & 0xff;
      if (seq !== undefined && !sequence.admits(seq, opens)) {
        this.#wait(seq, opens, arrival, message, member);
        return true;
      }
      this.#apply(arrival);
    }
    this.#release(sequence.closed(), member, sink);
    return true;
  }

  get nodes(): number {
    return this.#members.size;
  }

  /** Number of known edge nodes without a birth, or offline. */
  get unborn(): number {
    return this.#members.values().reduce((sum, { node }) => sum + (node.born ? 0 : 1), 0);
  }

  /** Adds the readings of messages that have waited for at least `forMs` milliseconds, 2 s by default. */
  releaseOverdue(time: EpochMicros, sink: ReadingSink, forMs: number = reorderMs): void {
    for (const member of this.#waiting) this.#abandonGap(member, forMs, time, sink);
  }

  #memberOf({ group, node }: SparkplugTopic): Member {
    const key = `${group}/${node}`;
    const known = this.#members.get(key);
    if (known) return known;
    const made: Member = { node: new EdgeNode(group, node, this.#room), sequence: new Sequence() };
    if (this.#members.size < maxNodes && key.length <= maxTopic) this.#members.set(key, made);
    return made;
  }

  /** Holds a message until its turn. Reads QoS 1 messages at once, since their acknowledgement must not wait. */
  #wait(seq: number, opens: boolean, arrival: SparkplugMessage, { payload, held }: Message, member: Member): void {
    const { topic, routes, address, time, sink } = arrival;
    const weight = weightOf(arrival.payload, payload.length);
    const waits = held === undefined && this.#waitingBytes + weight <= maxWaitingBytes;
    // The payload is a view of a socket buffer, so it is copied.
    const item = waits ? { topic, routes, address, time, payload: Buffer.from(payload), weight } : undefined;
    this.#waitingBytes += item?.weight ?? 0;
    const replaced = member.sequence.hold({ seq, item, opens, since: this.#parts.monotonic() });
    this.#waiting.add(member);
    if (replaced) this.#release([replaced], member, sink);
    if (!item) this.#apply(arrival);
  }

  #abandonGap(member: Member, forMs: number, time: EpochMicros, sink: ReadingSink): void {
    const { waitingSince } = member.sequence;
    if (waitingSince === undefined || this.#parts.monotonic() - waitingSince < forMs) return;
    this.#release(member.sequence.abandonGap(), member, sink);
    this.#requestRebirth(member.node, time);
  }

  #release(waiting: Iterable<Waiting<Held | undefined>>, member: Member, sink: ReadingSink): void {
    for (const { item } of waiting) {
      if (!item) continue;
      const { payload: bytes, weight, ...rest } = item;
      this.#waitingBytes -= weight;
      const payload = decodeSparkplug(bytes, this.#parts.maxPayload);
      const room = { elements: maxElements };
      this.#apply({ ...rest, payload, node: member.node, sink, counts: this.#parts.counts, room });
    }
    if (member.sequence.waitingSince === undefined) this.#waiting.delete(member);
  }

  #apply(arrival: SparkplugMessage): void {
    const { type, device } = arrival.topic;
    if (type === "DBIRTH") this.#birth(arrival);
    else if (type === "DDEATH") markStale(arrival, device, `device ${device} is offline`);
    else this.#data(arrival);
  }

  #birth(arrival: SparkplugMessage): void {
    const { node, topic, payload } = arrival;
    for (const metric of payload.metrics) {
      const { name, alias, datatype } = metric;
      if (name === undefined || isControl(name)) continue;
      readMetric(arrival, metric, node.declare(topic.device, name, alias, datatype));
    }
  }

  #data(arrival: SparkplugMessage): void {
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
    if (unknown) this.#requestRebirth(node, time);
  }

  /**
   * A death with an older `bdSeq` than the current birth belongs to an earlier session and is ignored. One with a newer
   * `bdSeq` is valid: its birth may be lost, and some nodes increment the number before their death.
   */
  #nodeDeath(arrival: SparkplugMessage, member: Member): void {
    const { node, topic, payload, sink } = arrival;
    const bdSeq = bdSeqOf(payload);
    const ahead = bdSeq === undefined || node.bdSeq === undefined ? 0 : (node.bdSeq - bdSeq) & 0xff;
    if (ahead > 0 && ahead < 128) return;
    this.#release(member.sequence.end(), member, sink);
    node.end();
    markStale(arrival, "", `edge node ${topic.node} is offline`);
  }

  #requestRebirth({ group, node }: EdgeNode, now: EpochMicros): void {
    if (this.#parts.rebirths.request(group, node, this.#parts.monotonic(), now)) this.#parts.counts.rebirths++;
  }
}

/** An array of bits has the most elements per byte. */
function weightOf({ metrics }: SparkplugPayload, bytes: number): number {
  const elements = (value: unknown) => (value instanceof Uint8Array ? Math.min(value.length * 8, 10_000) : 0);
  return metrics.reduce((sum, { value }) => sum + elementBytes * elements(value), bytes);
}

/** Data with the metric's name and datatype needs no birth. */
function named(node: EdgeNode, device: string, { name, alias, datatype }: SparkplugMetric): KnownMetric | undefined {
  return name === undefined || datatype === undefined ? undefined : node.declare(device, name, alias, datatype);
}

function bdSeqOf({ metrics }: SparkplugPayload): number | undefined {
  const value = metrics.find(({ name }) => name === "bdSeq")?.value;
  return typeof value === "number" || typeof value === "bigint" ? Number(value) : undefined;
}

/** Metrics of the protocol itself. */
function isControl(name: string): boolean {
  return name === "bdSeq" || /^(?:Node Control|Device Control|Node Info)\//.test(name);
}
