// State of a Sparkplug edge node: its metrics by name and alias, the order of its messages, and whether it is online.
// Also sends rebirth requests, the only messages that are ever published.
import type { EpochMicros } from "../../../core/point.ts";
import type { Captures } from "../../../core/source.ts";

export interface KnownMetric {
  readonly name: string;
  readonly datatype: number;
  /** Empty for metrics of the node itself. */
  readonly device: string;
  /** The object stays the same while the metric is known. */
  readonly captures: Captures;
  /** Address of the readings, independent of the message type. The string object stays the same, as `captures` does. */
  readonly address: string;
}

/** Most metrics of an edge node and its devices. It bounds the memory for a defective node. */
const maxMetrics = 100_000;
/** Memory of a metric in addition to its name, in characters. */
const metricSize = 200;

/** Remaining memory for the metrics of all edge nodes, in characters. */
export interface MetricRoom {
  characters: number;
}

export class EdgeNode {
  readonly group: string;
  readonly node: string;
  /** Group and node. */
  readonly name: string;
  /** Number of the current birth. Undefined: no birth was received. */
  bdSeq: number | undefined;
  born = false;
  /** By device, since some nodes assign the aliases of each device from 0. */
  readonly #byAlias = new Map<string, Map<number | bigint, KnownMetric>>();
  readonly #byName = new Map<string, KnownMetric>();
  readonly #room: MetricRoom;

  constructor(group: string, node: string, room: MetricRoom) {
    this.group = group;
    this.node = node;
    this.name = `${group}/${node}`;
    this.#room = room;
  }

  /** Processes the birth of the node, which assigns new aliases. A device birth may have arrived before it. */
  begin(bdSeq: number | undefined): void {
    if (this.born) this.#byAlias.clear();
    this.bdSeq = bdSeq;
    this.born = true;
  }

  /** Marks the node as offline. Its later data cannot be interpreted without a birth. */
  end(): void {
    this.born = false;
    this.#byAlias.clear();
  }

  /** Undefined `given`: the datatype of the declaration before, since data need not repeat it. */
  declare(device: string, name: string, alias: number | bigint | undefined, given: number | undefined): KnownMetric {
    const { group, node } = this;
    const key = `${device}\0${name}`;
    const known = this.#byName.get(key);
    const datatype = given ?? known?.datatype ?? 0;
    const captures = known?.captures ?? { group, node, device, metric: name };
    // The topic with `+` in place of the message type, followed by the metric.
    const address = known?.address ?? `spBv1.0/${group}/+/${node}${device === "" ? "" : `/${device}`} ${name}`;
    const metric = known?.datatype === datatype ? known : { name, datatype, device, captures, address };
    if (known) this.#byName.set(key, metric);
    else if (this.#byName.size < maxMetrics && this.#room.characters > 0) {
      this.#byName.set(key, metric);
      this.#room.characters -= metricSize + key.length;
    }
    if (alias === undefined || !this.#byName.has(key)) return metric;
    const aliases = this.#byAlias.get(device) ?? new Map<number | bigint, KnownMetric>();
    if (aliases.size < maxMetrics) this.#byAlias.set(device, aliases.set(alias, metric));
    return metric;
  }

  /** A name takes precedence over an alias. */
  find(device: string, name: string | undefined, alias: number | bigint | undefined): KnownMetric | undefined {
    if (name !== undefined && name !== "") return this.#byName.get(`${device}\0${name}`);
    return alias === undefined ? undefined : this.#byAlias.get(device)?.get(alias);
  }

  /** Metrics of the device; an empty `device` selects the node and all its devices. */
  metrics(device: string): readonly KnownMetric[] {
    return [...this.#byName.values()].filter((metric) => device === "" || metric.device === device);
  }
}

/** Least milliseconds between two requests to the same node. */
const perNodeMs = 60_000;
const maxNodes = 10_000;
/** Least milliseconds between two requests, so that a large plant does not respond at once. */
const perBrokerMs = 100;

export class RebirthRequests {
  readonly #publish: ((topic: string, payload: Buffer) => void) | undefined;
  readonly #lastByNode = new Map<string, number>();
  #last = Number.NEGATIVE_INFINITY;

  /** Undefined `publish`: no rebirths are requested; the host waits for births. */
  constructor(publish: ((topic: string, payload: Buffer) => void) | undefined) {
    this.#publish = publish;
  }

  /** Sends a request, unless this or another node was asked recently. Returns whether it was sent. */
  request(group: string, node: string, monotonicMs: number, now: EpochMicros): boolean {
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

/** Payload with a timestamp and the metric `Node Control/Rebirth`, a boolean (datatype 11) with the value true. */
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

// Orders the messages of one edge node by their sequence numbers, 0 to 255 with wrap-around.
//
// Messages on different topics may arrive out of order. A message ahead of the expected number waits until the gap
// closes. A device birth that arrives before its node's birth also waits. Its number belongs to a session of the node
// that has not begun, and later messages wait with it.

export interface Waiting<T> {
  readonly seq: number;
  readonly item: T;
  /** It is a device birth, which may belong to a session of the node that has not begun. */
  readonly opens: boolean;
  /** Monotonic milliseconds. */
  readonly since: number;
}

export class Sequence<T> {
  /** Expected number. Undefined: no birth defined one. */
  #due: number | undefined;
  /** In order of arrival; at most 256, one per number. */
  #waiting: Waiting<T>[] = [];

  /** Since when the oldest message has been waiting, in monotonic milliseconds. Undefined: none waits. */
  get waitingSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** Whether the message is next, or late after its gap was abandoned. Advances the expected number if it is next. */
  admits(seq: number, opens: boolean): boolean {
    if (seq === this.#due) {
      this.#due = next(seq);
      return true;
    }
    if (opens || this.#waiting.length > 0) return false;
    return this.#due === undefined || distance(this.#due, seq) < 0;
  }

  /** Holds a message. Returns the one that it replaces under the same number, which belongs to another session. */
  hold(waiting: Waiting<T>): Waiting<T> | undefined {
    const at = this.#waiting.findIndex(({ seq }) => seq === waiting.seq);
    const [replaced] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#waiting.push(waiting);
    return replaced;
  }

  /** Messages that no longer have to wait, since their gap has closed. */
  *closed(): Iterable<Waiting<T>> {
    for (;;) {
      const at = this.#waiting.findIndex(({ seq }) => seq === this.#due);
      const [found] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!found) return;
      this.#due = next(found.seq);
      yield found;
    }
  }

  /** Starts a session with the number `seq`. Returns the waiting messages of the previous session. */
  begin(seq: number | undefined): readonly Waiting<T>[] {
    const before = this.#due;
    const due = (this.#due = seq === undefined ? undefined : next(seq));
    if (due === undefined) return this.#take(() => true);
    if (before === undefined) return [];
    return this.#take((each) => ahead(before, each.seq) < ahead(due, each.seq));
  }

  /** Ends the session. Returns its waiting messages, without those of a later session. */
  end(): readonly Waiting<T>[] {
    const opening = this.#waiting.findIndex(({ opens }) => opens);
    const late = new Set(opening < 0 ? this.#waiting : this.#waiting.slice(0, opening));
    const before = this.#take((each) => late.has(each));
    this.#due = undefined;
    return before;
  }

  /** Abandons the gap. Returns all waiting messages by number, and continues after the last one. */
  abandonGap(): readonly Waiting<T>[] {
    const all = this.#take(() => true);
    const last = all.at(-1);
    if (this.#due !== undefined && last && distance(this.#due, last.seq) >= 0) this.#due = next(last.seq);
    return all;
  }

  #take(taken: (waiting: Waiting<T>) => boolean): readonly Waiting<T>[] {
    const all = this.#waiting.filter(taken);
    this.#waiting = this.#waiting.filter((each) => !all.includes(each));
    const due = this.#due;
    return due === undefined ? all : all.toSorted((a, b) => distance(due, a.seq) - distance(due, b.seq));
  }
}

function next(seq: number): number {
  return (seq + 1) % 256;
}

function ahead(from: number, seq: number): number {
  return (seq - from) & 0xff;
}

/** Signed distance from -128 to 127; negative is behind. */
function distance(from: number, seq: number): number {
  return ((seq - from + 128) & 0xff) - 128;
}
