// Decides which points the next request carries: as many as fit, and none for longer than the freshness bound without
// its turn. See the README of this folder for the reasons, cost and bounds of the algorithm.
import type { InputId } from "../core/point.ts";
import { type Candidate, type Cluster, clustersOf, inOrder } from "./cluster.ts";
import { Columns } from "./columns.ts";
import { columnOverhead, nullBytes, timeOverhead } from "./frame-plan.ts";
import { textLength } from "./number-text.ts";
import { JoinedColumn, type PackedPlan, type Part } from "./packed-column.ts";
import { RowSet } from "./row-set.ts";
import type { SeriesQueue } from "./series-queue.ts";
import { timeLength } from "./time-text.ts";

export interface PackLimits {
  /** Bytes of the whole request. */
  readonly maxBytes: number;
  /** Bytes of a request without times and series. */
  readonly envelopeBytes: number;
  readonly maxSeries: number;
  /** Series whose oldest point came before this (monotonic, ms) lead the frame. */
  readonly urgentBefore: number;
}

/** Share of a frame of the backlog that is kept free at most for fresh points of the same series. */
const mostShared = 0.5;
/** Fresh points with the same time that are worth keeping room for. */
const leastRiders = 8;

/** Bounds the work of one plan: look-ups of times, and series in a row that did not fit. */
const mostProbes = 1_500_000;
const mostMisfits = 64;
/** How often a frame of one cluster is begun again with more rows. */
const mostTries = 2;
/** Points after which the packer lets others run: a few milliseconds. */
const pointsPerSlice = 250_000;

/** Plans frames. Pure: what comes out depends on what goes in alone; only memory is kept and used again. */
export class Packer {
  readonly #order: typeof inOrder;
  readonly #rows = new RowSet();
  readonly #column = new Columns();
  readonly #shared = new Columns();
  #parts: Part[] = [];
  #limits: PackLimits = { maxBytes: 0, envelopeBytes: 0, maxSeries: 0, urgentBefore: 0 };
  #bytes = 0;
  #cells = 0;
  #points = 0;
  #probes = 0;
  /** Points looked at in this slice. */
  #work = 0;

  /** `order`: another order in which clusters are tried, to compare with. */
  constructor(order: typeof inOrder = inOrder) {
    this.#order = order;
  }

  /**
   * Yields after each slice of work. Undefined when there is nothing to send, or when not even one point fits.
   * `live`: fresh points that may ride along where their series are in the frame anyway.
   */
  *plan(
    candidates: Iterable<Candidate>,
    limits: PackLimits,
    live: Iterable<Candidate> = [],
  ): Generator<void, PackedPlan | undefined> {
    const riders = clustersOf(live);
    this.#reset({ ...limits, maxBytes: limits.maxBytes - roomFor(riders, limits.maxBytes * mostShared) });
    const clusters = this.#order(clustersOf(candidates), limits.urgentBefore);
    const misfits: Cluster[] = [];
    for (const cluster of clusters) {
      if (this.#parts.length === 0) yield* this.#addFirst(cluster);
      else if (!this.#addWhole(cluster)) misfits.push(cluster);
      if (misfits.length > mostMisfits || this.#probes > mostProbes || this.#full()) break;
      if (this.#sliceOver()) yield;
    }
    for (const cluster of misfits.slice(0, 2)) this.#addPart(cluster);
    this.#limits = limits;
    const joined = this.#join(riders);
    const parts = this.#parts;
    this.#parts = [];
    if (parts.length === 0) return undefined;
    const columns = parts.map((part) => {
      const rider = joined.get(part.queue.input);
      return rider
        ? { source: new JoinedColumn(part, rider), count: part.count + rider.count }
        : { source: part.queue, count: part.count };
    });
    const times = this.#rows.sorted();
    const nulls = times.length * columns.length - this.#cells;
    parts.push(...joined.values());
    return { times, columns, parts, points: this.#points, nulls, bytes: this.#bytes };
  }

  /** Adds fresh points to columns that are in the frame, where that costs few nulls; gives them by input. */
  #join(riders: readonly Cluster[]): Map<InputId, Part> {
    const joined = new Map<InputId, Part>();
    if (riders.length === 0) return joined;
    const inFrame = new Map(this.#parts.map((part) => [part.queue.input, part]));
    for (const cluster of riders) {
      const members = cluster.members.filter((queue) => {
        const part = inFrame.get(queue.input);
        return part?.queue.ascending && queue.ascending && queue.firstTime > part.queue.lastTime;
      });
      const [first] = members;
      if (!first) continue;
      const fresh = this.#freshRows(first);
      let text = 0;
      for (const member of members)
        text += member.textBytesAt(this.#column.times, cluster.rows) === undefined ? Infinity : member.textBytes;
      const cells = cluster.rows * members.length;
      const nulls = fresh.rows * this.#parts.length - cells;
      const bytes = this.#bytes + fresh.bytes + text + cells + nulls * nullBytes;
      if (bytes > this.#limits.maxBytes || nulls > cells) continue;
      for (let i = 0; i < cluster.rows; i++) this.#rows.add(this.#column.times[i]!);
      this.#bytes = bytes;
      this.#cells += cells;
      this.#points += cells;
      for (const queue of members) joined.set(queue.input, { queue, count: cluster.rows });
    }
    return joined;
  }

  #reset(limits: PackLimits): void {
    this.#limits = limits;
    this.#rows.clear();
    this.#parts = [];
    this.#bytes = limits.envelopeBytes;
    this.#cells = 0;
    this.#points = 0;
    this.#probes = 0;
    this.#work = 0;
  }

  #sliceOver(): boolean {
    if (this.#work < pointsPerSlice) return false;
    this.#work = 0;
    return true;
  }

  #full(): boolean {
    const room = this.#limits.maxBytes - this.#bytes;
    return this.#parts.length >= this.#limits.maxSeries || room < nullBytes * this.#rows.size + columnOverhead;
  }

  /** Begins a frame with as many rows of `cluster` as fit, the same for all its members. */
  *#addFirst(cluster: Cluster): Generator<void, void> {
    const { maxBytes, maxSeries } = this.#limits;
    const members = cluster.members.slice(0, maxSeries);
    let rows = rowsThatFit(members, cluster.rows, maxBytes - this.#bytes);
    for (let tries = 0; rows > 0; tries++) {
      let fits = true;
      for (const member of members) {
        fits = this.#add(member, rows);
        if (!fits) break;
        if (this.#sliceOver()) yield;
      }
      // The oldest values may be shorter or longer than all are on average.
      const more = Math.min(cluster.rows, Math.floor(rows * (maxBytes / this.#bytes) * 0.998));
      if (fits && (tries >= mostTries || more < rows * 1.02)) return;
      this.#reset(this.#limits);
      if (fits) rows = more;
      else rows = members.length === 1 ? rows >> 1 : Math.floor(rows * 0.98);
    }
    // Too wide for even one row: as many members as fit.
    this.#addPart(cluster);
  }

  #addWhole(cluster: Cluster): boolean {
    const [first] = cluster.members;
    const { maxBytes, maxSeries } = this.#limits;
    if (!first || this.#parts.length + cluster.members.length > maxSeries) return false;
    const rows = this.#rows.size;
    // The least it can take: every time is in the frame already.
    let least = this.#bytes;
    for (const member of cluster.members) {
      least += member.input.length + columnOverhead + member.textBytes + member.count;
      if (rows > member.count) least += (rows - member.count) * nullBytes;
    }
    if (least > maxBytes) return false;
    const fresh = this.#freshRows(first);
    const width = this.#parts.length;
    const nulls = fresh.rows * width + (rows + fresh.rows - cluster.rows) * cluster.members.length;
    const already = Math.max(0, rows - cluster.rows) * cluster.members.length;
    if (least + fresh.bytes + (nulls - already) * nullBytes > maxBytes) return false;
    // Members have the same times but for a collision of hashes: who does not fit then waits for the next frame.
    for (const member of cluster.members) this.#add(member, member.count);
    return true;
  }

  /** Times of `queue` that the frame has not, and their bytes. */
  #freshRows(queue: SeriesQueue): { rows: number; bytes: number } {
    queue.read(queue.count, this.#column);
    const { times, count } = this.#column;
    this.#probes += count;
    let rows = 0;
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      if (this.#rows.has(times[i]!)) continue;
      rows++;
      bytes += timeLength(times[i]!) + timeOverhead;
    }
    return { rows, bytes };
  }

  /** Fills what room is left with members of `cluster`, the last of them in part. */
  #addPart(cluster: Cluster): void {
    for (const member of cluster.members) {
      if (this.#parts.length >= this.#limits.maxSeries || this.#probes > mostProbes) return;
      if (!this.#add(member, member.count)) {
        this.#addPrefix(member);
        return;
      }
    }
  }

  /** Adds the oldest points of `queue` that fit, unless that is so few that their column is better used by another. */
  #addPrefix(queue: SeriesQueue): void {
    const alone = this.#parts.length === 0;
    const least = alone ? 1 : Math.max(1, queue.count / 8);
    let count = queue.ascending ? this.#prefix(queue) : queue.count >> 1;
    while (count >= least && !this.#add(queue, count)) count >>= 1;
  }

  /** How many of the oldest points fit beside what is in the frame. */
  #prefix(queue: SeriesQueue): number {
    queue.read(queue.count, this.#column);
    const { times, forms, count } = this.#column;
    this.#probes += count;
    const width = this.#parts.length;
    let left = this.#limits.maxBytes - this.#bytes - queue.input.length - columnOverhead - this.#rows.size * nullBytes;
    for (let i = 0; i < count; i++) {
      left -= textLength(forms[i]!) + 1;
      if (this.#rows.has(times[i]!)) left += nullBytes;
      else left -= timeLength(times[i]!) + timeOverhead + width * nullBytes;
      if (left < 0) return i;
    }
    return count;
  }

  /** Adds the oldest `points` of `queue` if they fit. */
  #add(queue: SeriesQueue, points: number): boolean {
    this.#work += points;
    const shared = this.#parts.length > 0 && this.#shared.count === points;
    const text = shared ? queue.textBytesAt(this.#shared.times, points) : undefined;
    if (text !== undefined)
      return this.#addColumn(queue, points, { cells: points, text: text + points, rows: 0, times: 0 });
    queue.read(points, this.#column);
    const { times, forms, count } = this.#column;
    const cost = { cells: count, text: count, rows: 0, times: 0 };
    this.#probes += count;
    for (let i = 0; i < count; i++) {
      cost.text += textLength(forms[i]!);
      if (this.#rows.has(times[i]!)) continue;
      cost.rows++;
      cost.times += timeLength(times[i]!) + timeOverhead;
    }
    if (!this.#addColumn(queue, points, cost)) return false;
    if (cost.rows > 0) for (let i = 0; i < count; i++) this.#rows.add(times[i]!);
    this.#shared.reserve(count);
    this.#shared.times.set(times.subarray(0, count));
    this.#shared.count = count;
    return true;
  }

  #addColumn(queue: SeriesQueue, points: number, cost: Cost): boolean {
    const height = this.#rows.size + cost.rows;
    const nulls = cost.rows * this.#parts.length + height - cost.cells;
    const bytes = this.#bytes + cost.times + queue.input.length + columnOverhead + cost.text + nulls * nullBytes;
    if (bytes > this.#limits.maxBytes) return false;
    this.#bytes = bytes;
    this.#cells += cost.cells;
    this.#points += points;
    this.#parts.push({ queue, count: points });
    return true;
  }
}

/** What a column adds to a frame: its cells, their text and commas, times that are new and their bytes. */
interface Cost {
  readonly cells: number;
  text: number;
  rows: number;
  times: number;
}

/** About how many rows of series that share their times fit into `room`; all of them only if they do for certain. */
function rowsThatFit(members: readonly SeriesQueue[], rows: number, room: number): number {
  let columns = 0;
  let text = 0;
  for (const member of members) {
    columns += member.input.length + columnOverhead;
    text += member.textBytes + member.count;
  }
  // A timestamp takes 30 bytes at most.
  if (columns + text + 30 * rows <= room) return rows;
  const [first] = members;
  const rowBytes = text / rows + timeLength(first?.firstTime ?? 0) + timeOverhead;
  return Math.min(rows, Math.floor(((room - columns) / rowBytes) * 0.998));
}

/** Bytes that fresh points take where they cost no nulls, at most `most`. */
function roomFor(riders: readonly Cluster[], most: number): number {
  let bytes = 0;
  for (const { rows, members } of riders) {
    if (members.length < leastRiders) continue;
    bytes += 30 * rows;
    for (const member of members) bytes += member.textBytes + member.count;
    if (bytes > most) return most;
  }
  return bytes;
}
