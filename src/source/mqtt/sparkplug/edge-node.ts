// What is known of one edge node: its metrics by name and alias, and whether it is there; and the request to introduce itself
// again, the one message that is ever published.
import type { EpochMicros } from "../../../core/point.ts";
import type { Captures } from "../../../core/source.ts";

/** A metric as its birth declared it. */
export interface KnownMetric {
  readonly name: string;
  readonly datatype: number;
  /** Empty for the node itself. */
  readonly device: string;
  /** The same object for as long as the metric is known. */
  readonly captures: Captures;
  /** Address of its readings, whichever message they come in; as long as `captures` the same object. */
  readonly address: string;
}

/** Metrics of one edge node and its devices at most; a defective node must not fill the memory. */
const maxMetrics = 100_000;
/** What a metric takes beside its name, in characters. */
const metricSize = 200;

/** What the metrics of all edge nodes together may still take, in characters. */
export interface MetricRoom {
  characters: number;
}

export class EdgeNode {
  readonly group: string;
  readonly node: string;
  /** Group and node: what it is called. */
  readonly name: string;
  /** Number of the current birth; undefined: no birth was seen. */
  bdSeq: number | undefined;
  born = false;
  #byAlias = new Map<number | bigint, KnownMetric>();
  readonly #byName = new Map<string, KnownMetric>();
  readonly #room: MetricRoom;

  constructor(group: string, node: string, room: MetricRoom) {
    this.group = group;
    this.node = node;
    this.name = `${group}/${node}`;
    this.#room = room;
  }

  /** A birth of the node, which assigns new aliases. A device of the same `seq` count may have been born before it. */
  begin(bdSeq: number | undefined): void {
    if (this.born) this.#byAlias = new Map();
    this.bdSeq = bdSeq;
    this.born = true;
  }

  /** The node is gone: what it sends next without a birth is not understood. */
  end(): void {
    this.born = false;
    this.#byAlias.clear();
  }

  declare(device: string, name: string, alias: number | bigint | undefined, datatype: number): KnownMetric {
    const { group, node } = this;
    const key = `${device}\0${name}`;
    const known = this.#byName.get(key);
    const captures = known?.captures ?? { group, node, device, metric: name };
    // The topic, in which `+` stands for the type of the message, and the metric.
    const address = known?.address ?? `spBv1.0/${group}/+/${node}${device === "" ? "" : `/${device}`} ${name}`;
    const metric = known?.datatype === datatype ? known : { name, datatype, device, captures, address };
    if (known) this.#byName.set(key, metric);
    else if (this.#byName.size < maxMetrics && this.#room.characters > 0) {
      this.#byName.set(key, metric);
      this.#room.characters -= metricSize + key.length;
    }
    if (alias !== undefined && this.#byAlias.size < maxMetrics && this.#byName.has(key))
      this.#byAlias.set(alias, metric);
    return metric;
  }

  /** A name goes before an alias. */
  find(device: string, name: string | undefined, alias: number | bigint | undefined): KnownMetric | undefined {
    if (name !== undefined && name !== "") return this.#byName.get(`${device}\0${name}`);
    return alias === undefined ? undefined : this.#byAlias.get(alias);
  }

  /** Metrics of the device, or of the node and all its devices. */
  metrics(device: string): readonly KnownMetric[] {
    return [...this.#byName.values()].filter((metric) => device === "" || metric.device === device);
  }
}

/** Milliseconds between two requests to the same node. */
const perNodeMs = 60_000;
/** Nodes whose last request is remembered. */
const maxNodes = 10_000;
/** Milliseconds between two requests to any, so that a large plant does not answer all at once. */
const perBrokerMs = 100;

export class RebirthRequests {
  readonly #publish: ((topic: string, payload: Buffer) => void) | undefined;
  readonly #lastByNode = new Map<string, number>();
  #last = Number.NEGATIVE_INFINITY;

  /** `publish` undefined: no rebirth is requested; the host waits for births. */
  constructor(publish: ((topic: string, payload: Buffer) => void) | undefined) {
    this.#publish = publish;
  }

  /** Asks, unless this node or another one was asked a moment ago. True: asked. */
  ask(group: string, node: string, monotonicMs: number, now: EpochMicros): boolean {
    const key = `${group}/${node}`;
    const last = this.#lastByNode.get(key) ?? Number.NEGATIVE_INFINITY;
    if (!this.#publish || monotonicMs - last < perNodeMs || monotonicMs - this.#last < perBrokerMs) return false;
    this.#last = monotonicMs;
    this.#lastByNode.delete(key);
    const [oldest] = this.#lastByNode.keys();
    if (this.#lastByNode.size >= maxNodes && oldest !== undefined) this.#lastByNode.delete(oldest);
    this.#lastByNode.set(key, monotonicMs);
    this.#publish(`spBv1.0/${group}/NCMD/${node}`, rebirthPayload(now));
    return true;
  }
}

/** Payload with the time and one metric, `Node Control/Rebirth`, a boolean (11) that is true. */
function rebirthPayload(now: EpochMicros): Buffer {
  const timestamp = varint(Math.floor(now / 1_000));
  const name = Buffer.from("Node Control/Rebirth");
  const metric = Buffer.from([0x0a, name.length, ...name, 0x18, ...timestamp, 0x20, 11, 0x70, 1]);
  return Buffer.from([0x08, ...timestamp, 0x12, metric.length, ...metric]);
}

function varint(value: number): readonly number[] {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left = Math.floor(left / 0x80)) bytes.push((left % 0x80) | 0x80);
  return [...bytes, left];
}
