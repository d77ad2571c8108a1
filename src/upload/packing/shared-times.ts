// Times that series share: the distinct times of a frame during planning, clusters of series with the same times with
// bounds of their size, and the order in which clusters are tried.
import { inSteps, type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { Columns, mergeOrder } from "../series/point-memory.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { columnOverhead, nullBytes } from "./frame.ts";

const empty = Number.NaN;
/** Cost of a lookup, in points. Lookups are random memory accesses. */
export const lookupWork = 4;

/** The distinct times of a frame in insertion order. Open addressing, at most half full; reuses its memory. */
export class RowSet {
  #slots = new Float64Array(4_096).fill(empty);
  #rows = new Float64Array(2_048);
  #count = 0;

  get size(): number {
    return this.#count;
  }

  clear(): void {
    // Deleting single entries would break the probe chains.
    if (this.#count > 0) this.#slots.fill(empty);
    this.#count = 0;
  }

  has(time: number): boolean {
    return this.#slots[this.#find(time)] === time;
  }

  /** Adds those of the times from `from` to `to` that are not present. Requires capacity: see `reserve`. */
  add(times: Float64Array, from: number, to: number): void {
    for (let i = from; i < to; i++) {
      const time = times[i]!;
      const slot = this.#find(time);
      if (this.#slots[slot] === time) continue;
      if (this.#count === this.#rows.length) throw new RangeError("no room for another time");
      this.#slots[slot] = time;
      this.#rows[this.#count++] = time;
    }
  }

  /** Whether `count` more times fit without `reserve`. */
  hasRoom(count: number): boolean {
    return this.#count + count <= this.#rows.length;
  }

  /** Ensures capacity for `count` times in total. */
  *reserve(count: number): Steps<void> {
    let capacity = this.#rows.length;
    if (count <= capacity) return;
    while (capacity < count) capacity *= 2;
    const rows = new Float64Array(capacity);
    rows.set(this.#rows);
    this.#rows = rows;
    this.#slots = new Float64Array(capacity * 2).fill(empty);
    // Cost of touching new memory.
    yield capacity / 2;
    yield* inSteps(this.#count, lookupWork, (from, to) => {
      for (let i = from; i < to; i++) this.#slots[this.#find(rows[i]!)] = rows[i]!;
    });
  }

  /** A sorted copy. */
  *sorted(): Steps<Float64Array> {
    const rows = this.#rows;
    const order = yield* mergeOrder(rows, this.#count);
    const sorted = new Float64Array(order.length);
    yield* inSteps(order.length, 1, (from, to) => {
      for (let i = from; i < to; i++) sorted[i] = rows[order[i]!]!;
    });
    return sorted;
  }

  /** The slot of `time`, or the free slot for it. */
  #find(time: number): number {
    const mask = this.#slots.length - 1;
    // `^` takes the low 32 bits.
    let slot = Math.imul(time ^ ((time / 0x1_0000_0000) | 0), 0x9e3779b1);
    slot = (slot ^ (slot >>> 15)) & mask;
    for (;;) {
      const found = this.#slots[slot]!;
      if (found === time || found !== found) return slot;
      slot = (slot + 1) & mask;
    }
  }
}

export interface Candidates {
  readonly queues: readonly SeriesQueue[];
  /** When the oldest point of a queue was leased, in monotonic milliseconds. */
  readonly since: (queue: SeriesQueue) => number;
}

/** Series with the same times. They share all timestamps and need no nulls among each other. */
export interface Cluster {
  /** Number of oldest points to send per member: all, or as many as the shortest member has. */
  rows: number;
  readonly members: SeriesQueue[];
  since: number;
}

/** Tolerated difference in depth between joined clusters, as a share of the lower depth. */
const mostLeftBehind = 1 / 2;

/** More rows than a request can carry. Those behind them are not compared. */
const mostRows = 400_000;

/** Cost of placing a series or cluster, in points. */
export const clusterWork = 20;

/** Largest size of a timestamp with quotes and comma. */
export const longestTime = 30;

/** Lower bound in bytes: names and values, without times and nulls. */
export function leastBytes(clusters: readonly Cluster[]): number {
  let bytes = 0;
  for (const { members } of clusters) bytes += leastBytesOf(members);
  return bytes;
}

/** As `leastBytes`, for the members of one cluster. */
export function leastBytesOf(members: readonly SeriesQueue[]): number {
  let bytes = 0;
  for (let i = 0; i < members.length; i++) {
    const { input, textBytes, count } = members[i]!;
    bytes += input.length + columnOverhead + textBytes + count;
  }
  return bytes;
}

/** Upper bound in bytes, as if no two clusters shared a time. `least`: result of `leastBytes`. */
export function mostBytes(clusters: readonly Cluster[], least: number): number {
  let [rows, width, points] = [0, 0, 0];
  for (const cluster of clusters) {
    rows += cluster.rows;
    width += cluster.members.length;
    points += cluster.rows * cluster.members.length;
  }
  return least + longestTime * rows + nullBytes * (rows * width - points);
}

/** Groups series by number and hash of their times. Equality is verified when they are read. */
export function* clustersOf({ queues, since }: Candidates): Steps<Cluster[]> {
  const byKey = new Map<number, Cluster>();
  const clusters: Cluster[] = [];
  let before: Cluster | undefined;
  let block: number | undefined;
  let at = 0;
  let work = 0;
  // Indexed loops over series: an iterator would allocate an object for each.
  for (let i = 0; i < queues.length; i++) {
    const queue = queues[i]!;
    const { count: rows, timesHash, ascending } = queue;
    if (rows === 0) continue;
    // Usually that of the previous series. A number returned by a call is an object.
    if (queue.firstBlock !== block) at = since(queue);
    block = queue.firstBlock;
    // The cluster of the previous series, which usually matches and saves a lookup.
    let cluster = before?.rows === rows && before.members[0]!.timesHash === timesHash && ascending ? before : undefined;
    const key = cluster ? 0 : (timesHash >>> 0) + rows * 0x1_0000_0000;
    if (!cluster && ascending) cluster = byKey.get(key);
    if (cluster) {
      cluster.members.push(queue);
      if (at < cluster.since) cluster.since = at;
    } else {
      cluster = { rows, members: [queue], since: at };
      clusters.push(cluster);
      if (ascending) byKey.set(key, cluster);
    }
    before = ascending ? cluster : undefined;
    work += clusterWork;
    if (work < stepWork) continue;
    yield work;
    work = 0;
  }
  return clusters;
}

/**
 * Joins clusters of similar depth whose common rows have equal times. A poll that arrives in two parts makes some
 * series one row deeper than others. Each joined cluster gets the lowest depth; the remaining points follow in the next
 * frame. Modifies its arguments.
 */
export function* joinedClusters(clusters: readonly Cluster[]): Steps<Cluster[]> {
  const apart: Cluster[] = [];
  const byFirstTime = new Map<number, Cluster>();
  const column = new Columns();
  for (const cluster of clusters) {
    yield clusterWork;
    const [first] = cluster.members;
    const leader = first && byFirstTime.get(first.firstTime);
    if (leader && goTogether(leader, cluster, column)) {
      yield leader.rows * 2;
      leader.rows = Math.min(leader.rows, cluster.rows);
      leader.since = Math.min(leader.since, cluster.since);
      for (const member of cluster.members) leader.members.push(member);
    } else {
      if (first?.ascending && !leader) byFirstTime.set(first.firstTime, cluster);
      apart.push(cluster);
    }
  }
  return apart;
}

function goTogether(one: Cluster, other: Cluster, column: Columns): boolean {
  const rows = Math.min(one.rows, other.rows);
  if (Math.max(one.rows, other.rows) > rows * (1 + mostLeftBehind)) return false;
  const [a] = one.members;
  const [b] = other.members;
  const compared = Math.min(rows, mostRows);
  return !!a && !!b && a.read(compared, column, "points") && b.textBytesAt(column.times, compared) !== undefined;
}

/**
 * Returns the deepest clusters first, with their whole depth, which carries the most points per request. If one has
 * waited too long, the longest waiting cluster leads, followed by clusters of similar depth, which share a frame best.
 */
export function clustersInOrder(clusters: readonly Cluster[], urgentBefore: number): Generator<Cluster, void> {
  let oldest: Cluster | undefined;
  for (const cluster of clusters) if (cluster.since < (oldest?.since ?? urgentBefore)) oldest = cluster;
  const depth = oldest && Math.log2(oldest.rows);
  const ranked = clusters.map((cluster): Ranked => {
    const { rows, since, members } = cluster;
    const distance = depth === undefined ? 0 : Math.round(Math.abs(Math.log2(rows) - depth));
    return { cluster, distance, since, weight: rows * members.length };
  });
  return smallestFirst(ranked, depth === undefined ? byWeight : byUrgency);
}

interface Ranked {
  readonly cluster: Cluster;
  readonly distance: number;
  readonly since: number;
  readonly weight: number;
}

function byWeight(a: Ranked, b: Ranked): number {
  return b.weight - a.weight || a.since - b.since;
}

function byUrgency(a: Ranked, b: Ranked): number {
  return a.distance - b.distance || a.since - b.since || b.weight - a.weight;
}

/** A heap, since usually few elements are requested. */
function* smallestFirst(heap: Ranked[], compare: (a: Ranked, b: Ranked) => number): Generator<Cluster, void> {
  const sink = (from: number) => {
    const sinking = heap[from]!;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && compare(heap[child + 1]!, heap[child]!) < 0) child++;
      if (compare(sinking, heap[child]!) <= 0) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = sinking;
  };
  for (let i = (heap.length >> 1) - 1; i >= 0; i--) sink(i);
  while (heap.length > 0) {
    const first = heap[0]!;
    const last = heap.pop()!;
    if (heap.length > 0) {
      heap[0] = last;
      sink(0);
    }
    yield first.cluster;
  }
}
