// Series that belong together in a frame, and the order in which they are tried.
import type { SeriesQueue } from "./series-queue.ts";

export interface Candidate {
  readonly queue: SeriesQueue;
  /** When its oldest point came, on the monotonic clock in milliseconds. */
  readonly since: number;
}

/** Series with the same times: they share every timestamp and need no nulls among themselves. */
export interface Cluster {
  readonly rows: number;
  readonly members: SeriesQueue[];
  since: number;
}

/** Groups by number and hash of the times; whether they are the same is seen when they are read. */
export function clustersOf(candidates: Iterable<Candidate>): Cluster[] {
  const byKey = new Map<number, Cluster>();
  const clusters: Cluster[] = [];
  for (const { queue, since } of candidates) {
    const rows = queue.count;
    if (rows === 0) continue;
    const key = (queue.timesHash >>> 0) + rows * 0x1_0000_0000;
    const cluster = queue.ascending ? byKey.get(key) : undefined;
    if (cluster) {
      cluster.members.push(queue);
      cluster.since = Math.min(cluster.since, since);
    } else {
      const begun = { rows, members: [queue], since };
      clusters.push(begun);
      if (queue.ascending) byKey.set(key, begun);
    }
  }
  return clusters;
}

/**
 * The deepest first, over their whole depth: a request carries most points that way. When something waits too long, the
 * one that waits longest leads, followed by what is about as deep as it: series of like depth share a frame best.
 */
export function inOrder(clusters: Cluster[], urgentBefore: number): Cluster[] {
  let oldest: Cluster | undefined;
  for (const cluster of clusters) if (cluster.since < (oldest?.since ?? urgentBefore)) oldest = cluster;
  const weight = (cluster: Cluster) => cluster.rows * cluster.members.length;
  if (!oldest) return clusters.sort((a, b) => weight(b) - weight(a) || a.since - b.since);
  const depth = Math.log2(oldest.rows);
  const distance = (cluster: Cluster) => Math.round(Math.abs(Math.log2(cluster.rows) - depth));
  return clusters.sort((a, b) => distance(a) - distance(b) || a.since - b.since || weight(b) - weight(a));
}
