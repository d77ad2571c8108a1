// The log itself: takes points, keeps within its bounds, remembers what is settled. Synchronous and without a clock of
// its own, so that one thread can run it and a test can stop it at any call to the disk.
import type { BufferStats, Lane } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import type { Accounts } from "./accounts.ts";
import { BlockShelf, type ShelfBlock, type ShelfSettlement } from "./block-shelf.ts";
import { ByteWriter } from "./bytes.ts";
import { type Disk, diskErrorCode } from "./disk.ts";
import { InputTable } from "./input-table.ts";
import type { LossReason } from "./loss-ledger.ts";
import type { Notes } from "./note.ts";
import type { PointColumns } from "./point-columns.ts";
import { RecentPoints, recentWindow } from "./recent-points.ts";
import { rememberNewest } from "./recent-refill.ts";
import type { Checksum } from "./record.ts";
import { recover } from "./recovery.ts";
import type { Segment } from "./segment.ts";
import { mendSegment } from "./segment-mending.ts";
import { type Scratch, SegmentWriter } from "./segment-writer.ts";
import { SeriesSorter } from "./series-sorter.ts";
import type { SegmentState, StateFile } from "./state-file.ts";

export interface StoreOptions {
  readonly folder: string;
  readonly integration: string;
  /** Bytes. */
  readonly maxSize: number;
  readonly maxAgeMs: number;
  /** Bytes. */
  readonly reserveFreeDisk: number;
  readonly whenFull: "dropOldest" | "block";
  readonly segmentBytes: number;
}

/** What the store stands on. */
export interface Ground {
  readonly disk: Disk;
  readonly checksum: Checksum;
  /** Random integers from 0 to below 2^32. */
  readonly random32: () => number;
  readonly note: Notes;
}

/** The time of a call: wall time in microseconds, monotonic time in milliseconds. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}

/** A changed state is written at the first tick after so long. */
const persistEveryMs = 5_000;
/** An active segment with a backlog is sealed when it is this part of `maxAge` old, so that age drops little at once. */
const agePart = 30;

export class Store {
  readonly inputs = new InputTable();
  readonly #options: StoreOptions;
  readonly #ground: Ground;
  readonly #stream: string;
  readonly #integration: string;
  readonly #segments: Segment[];
  readonly #accounts: Accounts;
  readonly #stateFile: StateFile;
  readonly #shelf: BlockShelf;
  readonly #recent = new RecentPoints();
  readonly #scratch: Scratch = { sorter: new SeriesSorter(), out: new ByteWriter(65_536) };
  readonly #uptimeBefore: number;
  readonly #opened: number;
  #writer: SegmentWriter | undefined;
  /** Dropped ones whose files are still there. */
  readonly #condemned = new Set<Segment>();
  #changed = true;
  #persistedAt = Number.NEGATIVE_INFINITY;
  #degraded: string | undefined;
  #oldest: { readonly time: number | undefined } | undefined;

  /** Throws `BUFFER_NEWER`, or what the disk throws where the folder cannot be used at all. */
  constructor(options: StoreOptions, ground: Ground, now: Moment) {
    const { disk, checksum, note } = ground;
    const { folder, integration } = options;
    this.#options = options;
    this.#ground = ground;
    const newStream = Array.from({ length: 4 }, () => ground.random32().toString(16).padStart(8, "0")).join("");
    const recovered = recover({ disk, folder, checksum, integration, newStream, note });
    this.#stream = recovered.stream;
    this.#integration = recovered.integration;
    this.#segments = recovered.segments;
    this.#accounts = recovered.accounts;
    this.#stateFile = recovered.stateFile;
    this.#uptimeBefore = recovered.uptime;
    this.#opened = now.monotonic;
    const { inputs } = this;
    this.#shelf = new BlockShelf({ ...ground, folder, inputs, accounts: this.#accounts, segments: this.#segments });
    rememberNewest(this.#recent, this.#segments, this.#shelf, inputs, disk, checksum);
    this.#persist(now);
  }

  /** Integration ID that the points here belong to, where it is not the configured one. */
  get foreign(): string | undefined {
    return this.#integration === this.#options.integration ? undefined : this.#integration;
  }

  /**
   * The points are durable when it returns. Changes `group`. Throws `BUFFER_UNAVAILABLE`; then none or the first of them
   * are stored, and to append them again does no harm.
   */
  append(group: PointColumns, now: Moment): void {
    const admission = this.#recent.admit(group);
    try {
      this.#write(group, admission.count, now);
    } catch (error) {
      this.#recent.undo();
      this.#degraded = error instanceof AgentError ? error.message : describe(this.#options.folder, error);
      throw new AgentError("BUFFER_UNAVAILABLE", this.#degraded, { cause: error });
    }
    this.#degraded = undefined;
    this.#accounts.duplicates += admission.duplicates;
    this.#accounts.collided += admission.collided;
    this.#changed = true;
  }

  /** Undefined: nothing is free. */
  take(lane: Lane, maxPoints: number, inputs: ReadonlySet<number> | undefined): ShelfBlock | undefined {
    return this.#shelf.take(lane, maxPoints, inputs);
  }

  settle(done: readonly ShelfSettlement[]): void {
    this.#shelf.settle(done);
    this.#oldest = undefined;
  }

  release(blocks: Iterable<number>): void {
    this.#shelf.release(blocks);
  }

  releaseAll(): void {
    this.#shelf.releaseAll();
  }

  /** To be called every few seconds: keeps the bounds, writes the state, tries to heal. */
  tick(now: Moment): void {
    for (const segment of this.#segments)
      if (segment.needsMending) mendSegment(segment, this.#ground.disk, this.#ground.checksum);
    this.#dropOld(now);
    this.#keepFree(0, now);
    const active = this.#writer?.segment;
    const part = (this.#options.maxAgeMs / agePart) * 1_000;
    if (active && active.unsettledPoints > 0 && now.wall - active.header.created > part) this.#sealActive();
    if (this.#degraded !== undefined) this.#tryToHeal(now);
    if ((this.#changed || this.#shelf.changed) && now.monotonic - this.#persistedAt >= persistEveryMs)
      this.#persist(now);
  }

  stats(): BufferStats {
    const accounts = this.#accounts;
    return {
      bytes: this.#bytes(),
      segments: this.#segments.length,
      appendedPoints: accounts.appended,
      settledPoints: accounts.settled,
      refusedPoints: accounts.refused,
      unsettledPoints: accounts.unexplained(0),
      oldest: this.#oldestUnsettled(),
      duplicatePoints: accounts.duplicates,
      collidedPoints: accounts.collided,
      losses: accounts.losses.list(),
      degraded: this.#degraded,
    };
  }

  /** Seals what is open and writes the state. */
  close(now: Moment): void {
    this.#shelf.releaseAll();
    this.#sealActive();
    this.#persist(now);
  }

  #write(group: PointColumns, count: number, now: Moment): void {
    let from = 0;
    let failures = 0;
    while (from < count) {
      try {
        this.#writer ??= this.#newSegment(now);
        const { segment } = this.#writer;
        const upTo = this.#writer.write(group, from, count, this.inputs);
        if (upTo === from) {
          this.#sealActive();
          continue;
        }
        this.#recent.confirm(upTo);
        from = upTo;
        segment.lastWall = now.wall;
        segment.lastUptime = this.#uptime(now);
        this.#accounts.next = segment.endSequence;
        this.#noteAppended(segment);
      } catch (error) {
        if (error instanceof AgentError) throw error;
        this.#ground.note("warn", { part: "buffer", err: String(error) }, "a write to the buffer failed");
        this.#giveUpActive();
        const isFull = ["ENOSPC", "EDQUOT"].includes(diskErrorCode(error));
        if (isFull && this.#options.whenFull === "dropOldest" && this.#dropOldest("diskFull", now)) continue;
        if (++failures > 1) throw error;
      }
    }
  }

  #newSegment(now: Moment): SegmentWriter {
    const { folder, segmentBytes } = this.#options;
    this.#keepFree(segmentBytes, now);
    const header = {
      kind: "hot",
      salt: this.#ground.random32(),
      stream: this.#stream,
      first: this.#accounts.next,
      created: now.wall,
      generation: 0,
      integration: this.#integration,
    } as const;
    const { disk, checksum } = this.#ground;
    const writer = SegmentWriter.create(header, { disk, checksum, folder, fullBytes: segmentBytes }, this.#scratch);
    this.#segments.push(writer.segment);
    return writer;
  }

  #sealActive(): void {
    const writer = this.#writer;
    this.#writer = undefined;
    if (!writer) return;
    try {
      writer.seal();
    } catch (error) {
      writer.segment.needsMending = true;
      this.#ground.note("warn", { part: "buffer", err: String(error) }, "a segment could not be sealed");
    }
    this.#shelf.keepIndex(writer.segment);
  }

  /** After a failed write or sync nothing is ever written through this descriptor again. */
  #giveUpActive(): void {
    const writer = this.#writer;
    this.#writer = undefined;
    if (!writer) return;
    writer.abandon();
    writer.segment.needsMending = true;
    this.#shelf.keepIndex(writer.segment);
  }

  /** Drops segments until `coming` bytes more keep within the bounds. Throws `BUFFER_UNAVAILABLE` where dropping is not allowed. */
  #keepFree(coming: number, now: Moment): void {
    const { folder, maxSize, reserveFreeDisk, whenFull } = this.#options;
    const limits: [LossReason, () => number][] = [
      ["maxSize", () => this.#bytes() + coming - maxSize],
      [
        "reserveFreeDisk",
        () => (reserveFreeDisk === 0 ? 0 : reserveFreeDisk + coming - this.#ground.disk.free(folder)),
      ],
    ];
    for (const [reason, excess] of limits) {
      let over = excess();
      if (over > 0) over -= this.#removeSettled(now);
      while (over > 0) {
        if (whenFull === "block") {
          if (coming > 0) throw new AgentError("BUFFER_UNAVAILABLE", `the buffer in ${folder} is full (${reason})`);
          break;
        }
        const bytes = this.#dropOldest(reason, now);
        if (bytes === undefined) break;
        over -= bytes;
      }
    }
  }

  #dropOld(now: Moment): void {
    const { maxAgeMs } = this.#options;
    for (const segment of this.#segments.slice()) {
      if (!segment.sealed || segment.unsettledPoints === 0) continue;
      // The wall clock may jump; the time that the buffer was open does not. Old is what both call old.
      const wallAge = (now.wall - segment.lastWall) / 1_000;
      if (wallAge > maxAgeMs && this.#uptime(now) - segment.lastUptime > maxAgeMs) this.#drop(segment, "maxAge", now);
    }
  }

  /** Bytes that came free; undefined when there is none to drop. */
  #dropOldest(reason: LossReason, now: Moment): number | undefined {
    const sealed = this.#segments.filter((segment) => segment.sealed && !this.#condemned.has(segment));
    const oldest = sealed.find((segment) => segment.blocksOut === 0) ?? sealed[0];
    if (!oldest) return undefined;
    this.#drop(oldest, reason, now);
    return oldest.bytes;
  }

  #drop(segment: Segment, reason: LossReason, now: Moment): void {
    const points = segment.unsettledPoints;
    this.#accounts.losses.add(reason, points, segment.earliest, segment.latest);
    segment.settleAll();
    this.#shelf.forget(segment);
    this.#condemned.add(segment);
    this.#oldest = undefined;
    if (points > 0)
      this.#ground.note(
        "error",
        { part: "buffer", points, reason, segment: segment.name },
        "dropped the oldest points",
      );
    this.#persist(now);
  }

  /** Frees what is settled, the segment kept for recent points too. Says how many bytes came free. */
  #removeSettled(now: Moment): number {
    const before = this.#bytes();
    for (const segment of this.#segments)
      if (segment.sealed && segment.unsettledPoints === 0) this.#condemned.add(segment);
    if (this.#condemned.size > 0) this.#persist(now);
    return before - this.#bytes();
  }

  #tryToHeal(now: Moment): void {
    try {
      this.#writer ??= this.#newSegment(now);
      this.#degraded = undefined;
      this.#ground.note("info", { part: "buffer" }, "the buffer takes points again");
    } catch (error) {
      this.#degraded = error instanceof AgentError ? error.message : describe(this.#options.folder, error);
    }
  }

  /** Writes the state, then removes what it says is done with. Never throws: it is tried again at a later tick. */
  #persist(now: Moment): void {
    const { disk, note } = this.#ground;
    this.#persistedAt = now.monotonic;
    try {
      this.#stateFile.write(this.#state(now));
      this.#changed = false;
      this.#shelf.changed = false;
    } catch (error) {
      note("warn", { part: "buffer", err: String(error) }, "the state of the buffer could not be written");
      // Only a full disk justifies to remove what the state does not know of yet: else nothing could ever get better.
      if (!["ENOSPC", "EDQUOT"].includes(diskErrorCode(error))) return;
    }
    const gone = this.#segments.filter((segment) => this.#isDone(segment));
    if (gone.length === 0) return;
    try {
      for (const segment of gone) {
        disk.remove(segment.path);
        this.#segments.splice(this.#segments.indexOf(segment), 1);
        this.#condemned.delete(segment);
        this.#shelf.forget(segment);
      }
      disk.syncFolder(this.#options.folder);
      // The state still tells of the segments; the next one does not have to.
      this.#changed = true;
    } catch (error) {
      note("warn", { part: "buffer", err: String(error) }, "a segment could not be removed");
    }
  }

  #isDone(segment: Segment): boolean {
    if (!segment.sealed || segment.unsettledPoints > 0) return false;
    if (segment.points === 0 || this.#condemned.has(segment)) return true;
    // The newest points stay until enough came after them: a repeated one has to be recognised after a restart.
    const isNewest = this.#segments.findLast((other) => other.sealed && other.points > 0) === segment;
    return !isNewest || this.#accounts.next - segment.endSequence >= recentWindow;
  }

  #state(now: Moment) {
    const { opens, next, origin, settled, refused, duplicates, collided, losses } = this.#accounts;
    const segments: SegmentState[] = [];
    for (const { name, header, settledBySeries, settled: coverage } of this.#segments) {
      if (coverage.isEmpty) continue;
      const series = [...coverage.series()].map(([place, ranges]) => ({ place, bounds: ranges.bounds }));
      segments.push({ name, generation: header.generation, settledBySeries, whole: coverage.whole.bounds, series });
    }
    const integration = this.#integration;
    const counts = { opens, uptime: this.#uptime(now), durable: next, origin, settled, refused, duplicates, collided };
    return { ...counts, integration, losses: losses.list(), segments };
  }

  #uptime(now: Moment): number {
    return this.#uptimeBefore + now.monotonic - this.#opened;
  }

  #bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.bytes;
    return bytes;
  }

  #noteAppended(segment: Segment): void {
    const last = segment.index?.earliest.at(-1);
    if (this.#oldest && last !== undefined && last < (this.#oldest.time ?? Number.POSITIVE_INFINITY))
      this.#oldest = { time: last };
  }

  #oldestUnsettled() {
    if (!this.#oldest) {
      let time = Number.POSITIVE_INFINITY;
      for (const segment of this.#segments) time = Math.min(time, segment.oldestUnsettled() ?? time);
      this.#oldest = { time: Number.isFinite(time) ? time : undefined };
    }
    return this.#oldest.time === undefined ? undefined : epochMicros(this.#oldest.time);
  }
}

function describe(folder: string, error: unknown): string {
  return `cannot write to ${folder}: ${error instanceof Error ? error.message : String(error)}`;
}
