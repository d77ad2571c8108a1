// Chooses the points of the next request: as many as fit, while no series exceeds the freshness bound. The README of
// this folder explains the algorithm with its cost and bounds.
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/flow/in-slices.ts";
import { timeLength } from "../series/number-text.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import {
  type ColumnSource,
  columnOverhead,
  joinedColumn,
  nullBytes,
  type PackedPlan,
  PlannedColumns,
  type QueueColumns,
  timeOverhead,
} from "./frame.ts";
import { FrameDraft, type FreshRows } from "./frame-draft.ts";
import {
  type Candidates,
  type Cluster,
  clustersInOrder,
  clustersOf,
  clusterWork,
  joinedClusters,
  leastBytes,
  leastBytesOf,
  longestTime,
  mostBytes,
} from "./shared-times.ts";

export interface PackLimits {
  /** Limit for the whole request. */
  readonly maxBytes: number;
  /** Bytes of a request without times and series. */
  readonly envelopeBytes: number;
  readonly maxSeries: number;
  /** Series whose oldest point was leased before this (monotonic, ms) lead the frame. */
  readonly urgentBefore: number;
}

/** Largest share of a backlog frame that is reserved for live points of the same series. */
const mostShared = 0.5;
/** Fewest live points with a common time for which bytes are reserved. */
const leastRiders = 8;

/** Limits for one plan: points examined beyond those of a full frame, and clusters that did not fit. */
const mostWork = 4_000_000;
const mostMisfits = 64;
/** Attempts to find a row count that cuts no block of any member. */
const mostBorders = 4;
/** Restarts of a single-cluster frame with more rows. */
const mostTries = 2;
/** If a frame of whole blocks carries less than this share of one with cut blocks, blocks are cut. */
const leastWholeBlocks = 0.5;

/** Plans frames. The result depends only on the arguments; memory is reused. */
export class Packer {
  readonly #draft = new FrameDraft();
  #limits: PackLimits = { maxBytes: 0, envelopeBytes: 0, maxSeries: 0, urgentBefore: 0 };
  /** Whether live points may join the frame. */
  #hasRiders = false;
  /** Work of the draft at the start of this plan. */
  #begun = 0;

  /** Undefined: no points, or none fits. `live`: points that may join the frame. Arguments must not change. */
  *plan(candidates: Candidates, limits: PackLimits, live?: Candidates): Steps<PackedPlan | undefined> {
    const draft = this.#draft;
    const riders = live ? yield* clustersOf(live) : [];
    this.#limits = limits;
    this.#hasRiders = riders.length > 0;
    this.#begun = draft.work;
    draft.begin(limits.envelopeBytes, limits.maxBytes - roomFor(riders, limits.maxBytes * mostShared));
    const misfits: Cluster[] = [];
    const apart = yield* clustersOf(candidates);
    const least = leastBytes(apart);
    // If all points fit, no cluster needs to be shortened.
    const clusters = least > limits.maxBytes ? yield* joinedClusters(apart) : apart;
    const isAll =
      candidates.queues.length <= limits.maxSeries && mostBytes(apart, least) <= draft.maxBytes - draft.bytes;
    for (const cluster of isAll ? apart : clustersInOrder(clusters, limits.urgentBefore)) {
      if (draft.width === 0 && !isAll) yield* this.#addFirst(cluster);
      else {
        const { rows, members } = cluster;
        const least = this.#least(cluster);
        const fresh = least > draft.maxBytes ? undefined : draft.freshRows(members[0]!);
        const fits = fresh && this.#fits(cluster, least, "rows" in fresh ? fresh : yield* fresh);
        if (!fits) misfits.push(cluster);
        // After a hash collision the times may differ. Members that do not fit wait for the next frame.
        for (let i = 0; fits && i < members.length; i++) {
          const added = draft.add(members[i]!, rows);
          if (typeof added !== "boolean") yield* added;
          const work = draft.takeUnyielded(0);
          if (work > 0) yield work;
        }
      }
      if (misfits.length > mostMisfits || this.#tired || this.#full) break;
      const work = draft.takeUnyielded(clusterWork);
      if (work > 0) yield work;
    }
    for (const cluster of misfits.slice(0, 2)) yield* this.#addPart(cluster);
    if (draft.width === 0) return undefined;
    draft.maxBytes = limits.maxBytes;
    // If all points are in the frame, its series keep the order of the candidates, so that answers repeat.
    const points = apart.reduce((sum, { rows, members }) => sum + rows * members.length, 0);
    const isWhole = isAll && draft.width === candidates.queues.length && draft.points === points;
    const parts = isWhole ? PlannedColumns.all(candidates.queues) : draft.parts;
    return yield* this.#finish(parts, yield* this.#join(parts, riders));
  }

  *#finish(parts: QueueColumns, joined: ReadonlyMap<InputId, SeriesQueue>): Steps<PackedPlan> {
    const { points, nulls, bytes } = this.#draft;
    yield this.#draft.takeUnyielded(0, 0);
    const times = yield* this.#draft.times();
    if (joined.size === 0) return { times, columns: parts, parts, points, nulls, bytes };
    const riders = PlannedColumns.all([...joined.values()]);
    const sources = parts.sources.map((queue, i) => {
      const live = joined.get(queue.input);
      return live ? joinedColumn(queue, parts.counts[i]!, live) : queue;
    });
    const counts = parts.counts.map((count, i) => count + (joined.get(parts.sources[i]!.input)?.count ?? 0));
    const all = new PlannedColumns(
      [...parts.sources, ...riders.sources],
      Uint32Array.from([...parts.counts, ...riders.counts]),
    );
    return { times, columns: new PlannedColumns<ColumnSource>(sources, counts), parts: all, points, nulls, bytes };
  }

  /** Adds live points to columns of the frame. Returns them by input. */
  *#join(parts: QueueColumns, riders: readonly Cluster[]): Steps<Map<InputId, SeriesQueue>> {
    const joined = new Map<InputId, SeriesQueue>();
    const inFrame = new Map(riders.length > 0 ? parts.sources.map((queue) => [queue.input, queue]) : []);
    for (const { members } of riders) {
      const within = members.filter((queue) => {
        const backlog = inFrame.get(queue.input);
        return backlog?.ascending && queue.ascending && queue.firstTime > backlog.lastTime;
      });
      if (!(yield* this.#draft.join(within))) continue;
      for (const queue of within) joined.set(queue.input, queue);
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

  /** Starts a frame with as many rows of `cluster` as fit, the same number for all members. */
  *#addFirst(cluster: Cluster): Steps<void> {
    const draft = this.#draft;
    const { maxBytes } = draft;
    const members = cluster.members.slice(0, this.#limits.maxSeries);
    const [first] = members;
    if (first && members.length === 1 && first.ascending) {
      const count = yield* draft.prefix(first);
      if (count > 0) yield* this.#addEach(members, () => first.wholeBlocks(count) || count);
      return;
    }
    const fitting = rowsThatFit(members, cluster.rows, maxBytes - draft.bytes);
    // Live points join only series in the frame, so a frame with few series would exclude most of them.
    if (!this.#hasRiders && members.some((member) => member.firstRun > fitting)) {
      // As many members as fit, because a kill repeats unfinished blocks.
      yield* this.#addEach(members, ({ firstRun }) => firstRun);
      if (draft.width > 0 && draft.points >= leastWholeBlocks * fitting * members.length) return;
      draft.begin(this.#limits.envelopeBytes, maxBytes);
    }
    let rows = uncut(members, fitting);
    for (let tries = 0; rows > 0; tries++) {
      const fits = (yield* this.#addEach(members, () => rows)) === members.length;
      // The oldest values may be shorter or longer than the average.
      const more = uncut(members, Math.min(cluster.rows, Math.floor(rows * (maxBytes / draft.bytes) * 0.998)));
      if (fits && (tries >= mostTries || more < rows * 1.02)) return;
      draft.begin(this.#limits.envelopeBytes, maxBytes);
      if (fits) rows = more;
      else rows = uncut(members, members.length === 1 ? rows >> 1 : Math.floor(rows * 0.98));
    }
    // Not even one row fits, so as many members as possible are added.
    yield* this.#addPart(cluster);
  }

  /** Adds the oldest points of each member until one does not fit. Returns how many members were added. */
  *#addEach(members: readonly SeriesQueue[], pointsOf: (member: SeriesQueue) => number): Steps<number> {
    const draft = this.#draft;
    for (let i = 0; i < members.length; i++) {
      const added = draft.add(members[i]!, pointsOf(members[i]!));
      if (!(typeof added === "boolean" ? added : yield* added)) return i;
      const work = draft.takeUnyielded(0);
      if (work > 0) yield work;
    }
    return members.length;
  }

  /** Lower bound in bytes of the frame with `cluster`, as if every time were in the frame already. */
  #least({ members }: Cluster): number {
    const { bytes, width, height } = this.#draft;
    if (width + members.length > this.#limits.maxSeries) return Number.POSITIVE_INFINITY;
    let nulls = 0;
    for (let i = 0; i < members.length; i++) nulls += Math.max(0, height - members[i]!.count);
    return bytes + leastBytesOf(members) + nulls * nullBytes;
  }

  /** Whether `cluster` fits. `least`: result of `#least`. `fresh`: its times that are not in the frame. */
  #fits({ rows, members }: Cluster, least: number, fresh: FreshRows): boolean {
    const { width, height, maxBytes } = this.#draft;
    const nulls = fresh.rows * width + (height + fresh.rows - rows) * members.length;
    const already = Math.max(0, height - rows) * members.length;
    return least + fresh.times + (nulls - already) * nullBytes <= maxBytes;
  }

  /** Fills the remaining bytes with members of `cluster`, the last one partially. */
  *#addPart(cluster: Cluster): Steps<void> {
    const members = cluster.members.slice(0, this.#limits.maxSeries - this.#draft.width);
    const whole = yield* this.#addEach(members, ({ count }) => count);
    if (whole < members.length) yield* this.#addPrefix(members[whole]!);
  }

  /** Adds the oldest fitting points of `queue`, unless they are too few to justify a column. */
  *#addPrefix(queue: SeriesQueue): Steps<void> {
    const alone = this.#draft.width === 0;
    const least = alone ? 1 : Math.max(1, queue.count / 8);
    let count = queue.ascending ? yield* this.#draft.prefix(queue) : queue.count >> 1;
    // Cuts a block only if nothing could be sent otherwise.
    count = queue.wholeBlocks(count) || (alone ? count : 0);
    while (count >= least && (yield* this.#addEach([queue], () => count)) === 0) count >>= 1;
  }
}

/** Most rows up to `rows` that cut no block of any member, or `rows` if there is no such number. */
function uncut(members: readonly SeriesQueue[], rows: number): number {
  let most = rows;
  for (let tries = 0; tries < mostBorders; tries++) {
    const before = most;
    for (let i = 0; i < members.length; i++) most = Math.min(most, members[i]!.wholeBlocks(most));
    if (most === 0) break;
    if (most === before) return most;
  }
  return rows;
}

/** Estimated rows of series with common times that fit into `room`. All rows only if they certainly fit. */
function rowsThatFit(members: readonly SeriesQueue[], rows: number, room: number): number {
  let [columns, text] = [0, 0];
  for (let i = 0; i < members.length; i++) {
    columns += members[i]!.input.length + columnOverhead;
    text += members[i]!.textBytes + members[i]!.count;
  }
  if (columns + text + longestTime * rows <= room) return rows;
  const [first] = members;
  const rowBytes = text / rows + timeLength(first?.firstTime ?? 0) + timeOverhead;
  return Math.min(rows, Math.floor(((room - columns) / rowBytes) * 0.998));
}

/** Bytes of live points that cause no nulls, at most `most`. */
function roomFor(riders: readonly Cluster[], most: number): number {
  let bytes = 0;
  for (const { rows, members } of riders) {
    if (members.length < leastRiders) continue;
    bytes += longestTime * rows;
    for (const member of members) bytes += member.textBytes + member.count;
    if (bytes > most) return most;
  }
  return bytes;
}
