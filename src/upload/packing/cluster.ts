// Series that belong together in a frame, and the order in which they are tried.
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import { Columns } from "../series/columns.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

export interface Candidates {
  readonly queues: readonly SeriesQueue[];
  /** When the oldest point of one came, on the monotonic clock in milliseconds. */
  readonly since: (queue: SeriesQueue) => number;
}

/** Series with the same times: they share every timestamp and need no nulls among themselves. */
export interface Cluster {
  /** How many of their oldest points are meant: all of them, or as many as the least deep has. */
  rows: number;
  readonly members: SeriesQueue[];
  since: number;
}

/** Share of the depth of a cluster by which another one that it goes along with may be deeper. */
const mostLeftBehind = 1 / 2;

/** Putting a series or a cluster in its place takes as long as copying so many points. */
export const clusterWork = 20;

/** Groups by number and hash of the times; whether they are the same is seen when they are read. */
export function* clustersOf({ queues, since }: Candidates): Steps<Cluster[]> {
  const byKey = new Map<number, Cluster>();
  const clusters: Cluster[] = [];
  let before: Cluster | undefined;
  let work = 0;
  // Loops over series count: there may be one for each point, and an iterator makes an object for each.
  for (let i = 0; i < queues.length; i++) {
    const queue = queues[i]!;
    const { count: rows, timesHash, ascending } = queue;
    if (rows === 0) continue;
    const at = since(queue);
    // Mostly those of the series before: then nothing needs to be looked up.
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
 * Puts those together that have the same times as far as the less deep of them goes, and are about as deep: a poll that came
 * in two parts makes some series one row deeper than others. They go out as deep as the least of them; what is left goes
 * with the next frame. Changes what it is given.
 */
export function* joinedClusters(clusters: readonly Cluster[]): Steps<Cluster[]> {
  const apart: Cluster[] = [];
  const byFirstTime = new Map<number, Cluster>();
  const column = new Columns();
  for (const cluster of clusters) {
    yield clusterWork;
    const [first] = cluster.members;
    const leader = first && byFirstTime.get(first.firstTime);
    if (leader && (yield* goTogether(leader, cluster, column))) {
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

function* goTogether(one: Cluster, other: Cluster, column: Columns): Steps<boolean> {
  const rows = Math.min(one.rows, other.rows);
  if (Math.max(one.rows, other.rows) > rows * (1 + mostLeftBehind)) return false;
  const [a] = one.members;
  const [b] = other.members;
  if (!a || !b) return false;
  yield* a.read(rows, column);
  return (yield* b.textBytesAt(column.times, rows)) !== undefined;
}

/**
 * The deepest first, over their whole depth: a request carries most points that way. When something waits too long, the
 * one that waits longest leads, followed by what is about as deep as it: series of like depth share a frame best.
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

/** Mostly few of them are asked for, so that they are put in order while they are: in a heap. */
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
