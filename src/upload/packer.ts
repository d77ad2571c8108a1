// Decides which points the next request carries: as many as fit, and none for longer than the freshness bound without
// its turn. See the README of this folder for the reasons, cost and bounds of the algorithm.
import type { InputId } from "../core/point.ts";
import { type Candidate, type Cluster, clustersOf, inOrder } from "./cluster.ts";
import { FrameDraft } from "./frame-draft.ts";
import { columnOverhead, nullBytes, timeOverhead } from "./frame-plan.ts";
import { JoinedColumn, type PackedPlan, type Part } from "./packed-column.ts";
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

/** Bounds the work of one plan, in points looked at beside those that a frame can hold, and clusters that did not fit. */
const mostWork = 4_000_000;
const mostMisfits = 64;
/** How often a frame of one cluster is begun again with more rows. */
const mostTries = 2;
/** Points after which the packer lets others run: a few milliseconds. */
const pointsPerSlice = 250_000;

/** Plans frames. Pure: what comes out depends on what goes in alone; only memory is kept and used again. */
export class Packer {
  readonly #order: typeof inOrder;
  readonly #draft = new FrameDraft();
  #limits: PackLimits = { maxBytes: 0, envelopeBytes: 0, maxSeries: 0, urgentBefore: 0 };
  /** Work of the draft when this plan was begun, and when this slice was. */
  #begun = 0;
  #slice = 0;

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
    const draft = this.#draft;
    const riders = clustersOf(live);
    this.#limits = limits;
    this.#begun = draft.work;
    this.#slice = draft.work;
    draft.begin(limits.envelopeBytes, limits.maxBytes - roomFor(riders, limits.maxBytes * mostShared));
    const misfits: Cluster[] = [];
    for (const cluster of this.#order(clustersOf(candidates), limits.urgentBefore)) {
      if (draft.width === 0) yield* this.#addFirst(cluster);
      else if (!this.#addWhole(cluster)) misfits.push(cluster);
      if (misfits.length > mostMisfits || this.#tired || this.#full) break;
      if (this.#sliceOver()) yield;
    }
    for (const cluster of misfits.slice(0, 2)) this.#addPart(cluster);
    if (draft.width === 0) return undefined;
    draft.maxBytes = limits.maxBytes;
    return this.#finish(this.#join(riders));
  }

  #finish(joined: ReadonlyMap<InputId, Part>): PackedPlan {
    const { parts, points, nulls, bytes } = this.#draft;
    const columns = parts.map((part) => {
      const rider = joined.get(part.queue.input);
      return rider
        ? { source: new JoinedColumn(part, rider), count: part.count + rider.count }
        : { source: part.queue, count: part.count };
    });
    return { times: this.#draft.times(), columns, parts: [...parts, ...joined.values()], points, nulls, bytes };
  }

  /** Adds fresh points to columns that are in the frame; gives them by input. */
  #join(riders: readonly Cluster[]): Map<InputId, Part> {
    const joined = new Map<InputId, Part>();
    const inFrame = new Map(riders.length > 0 ? this.#draft.parts.map(({ queue }) => [queue.input, queue]) : []);
    for (const { members } of riders) {
      const within = members.filter((queue) => {
        const backlog = inFrame.get(queue.input);
        return backlog?.ascending && queue.ascending && queue.firstTime > backlog.lastTime;
      });
      if (!this.#draft.join(within)) continue;
      for (const queue of within) joined.set(queue.input, { queue, count: queue.count });
    }
    return joined;
  }

  get #tired(): boolean {
    return this.#draft.work - this.#begun > mostWork;
  }

  get #full(): boolean {
    const { bytes, maxBytes, width, height } = this.#draft;
    return width >= this.#limits.maxSeries || maxBytes - bytes < nullBytes * height + columnOverhead;
  }

  #sliceOver(): boolean {
    if (this.#draft.work - this.#slice < pointsPerSlice) return false;
    this.#slice = this.#draft.work;
    return true;
  }

  /** Begins a frame with as many rows of `cluster` as fit, the same for all its members. */
  *#addFirst(cluster: Cluster): Generator<void, void> {
    const draft = this.#draft;
    const { maxBytes } = draft;
    const members = cluster.members.slice(0, this.#limits.maxSeries);
    let rows = rowsThatFit(members, cluster.rows, maxBytes - draft.bytes);
    for (let tries = 0; rows > 0; tries++) {
      let fits = true;
      for (const member of members) {
        fits = draft.add(member, rows);
        if (!fits) break;
        if (this.#sliceOver()) yield;
      }
      // The oldest values may be shorter or longer than all are on average.
      const more = Math.min(cluster.rows, Math.floor(rows * (maxBytes / draft.bytes) * 0.998));
      if (fits && (tries >= mostTries || more < rows * 1.02)) return;
      draft.begin(this.#limits.envelopeBytes, maxBytes);
      if (fits) rows = more;
      else rows = members.length === 1 ? rows >> 1 : Math.floor(rows * 0.98);
    }
    // Too wide for even one row: as many members as fit.
    this.#addPart(cluster);
  }

  /** Adds all of `cluster`, or nothing of it. */
  #addWhole(cluster: Cluster): boolean {
    const [first] = cluster.members;
    const draft = this.#draft;
    const { maxBytes, width, height: rows } = draft;
    if (!first || width + cluster.members.length > this.#limits.maxSeries) return false;
    // The least it can take: every time is in the frame already.
    let least = draft.bytes;
    for (const member of cluster.members) {
      least += member.input.length + columnOverhead + member.textBytes + member.count;
      if (rows > member.count) least += (rows - member.count) * nullBytes;
    }
    if (least > maxBytes) return false;
    const fresh = draft.freshRows(first);
    const nulls = fresh.rows * width + (rows + fresh.rows - cluster.rows) * cluster.members.length;
    const already = Math.max(0, rows - cluster.rows) * cluster.members.length;
    if (least + fresh.bytes + (nulls - already) * nullBytes > maxBytes) return false;
    // Members have the same times but for a collision of hashes: who does not fit then waits for the next frame.
    for (const member of cluster.members) draft.add(member, member.count);
    return true;
  }

  /** Fills what room is left with members of `cluster`, the last of them in part. */
  #addPart(cluster: Cluster): void {
    for (const member of cluster.members) {
      if (this.#draft.width >= this.#limits.maxSeries || this.#tired) return;
      if (!this.#draft.add(member, member.count)) {
        this.#addPrefix(member);
        return;
      }
    }
  }

  /** Adds the oldest points of `queue` that fit, unless that is so few that their column is better used by another. */
  #addPrefix(queue: SeriesQueue): void {
    const alone = this.#draft.width === 0;
    const least = alone ? 1 : Math.max(1, queue.count / 8);
    let count = queue.ascending ? this.#draft.prefix(queue) : queue.count >> 1;
    while (count >= least && !this.#draft.add(queue, count)) count >>= 1;
  }
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
