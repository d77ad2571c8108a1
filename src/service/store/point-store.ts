// Points of all signals as blocks in SQLite. Blocks of a signal never overlap, and the last write of a time wins.
// Small writes are merged as in a binary counter: a new run absorbs neighbours that are not longer. Long runs are not
// merged, since that would take most of the time of a large insert.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { decodePoints } from "./block-format.ts";
import { decodedRun, type EncodedBlock, encodedBlocks } from "./encoded-run.ts";
import { type BlockColumns, fullBlock, indexOfTime, mergeColumns, sliceColumns } from "./point-block.ts";

export const pointTables = `
  CREATE TABLE IF NOT EXISTS block (
    number INTEGER PRIMARY KEY,
    signal INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    count INTEGER NOT NULL,
    data BLOB NOT NULL
  );
  CREATE UNIQUE INDEX IF NOT EXISTS block_by_time ON block (signal, first);
`;

/** Runs of at least this many points are not merged. Their blocks take a third of a byte a point more. */
const longRun = 256;

/** Takes 2 MiB. */
const maxLastBlocks = 20_000;

/** Points of one signal by strictly ascending time, in columns or encoded. */
export type PointRun = BlockColumns | readonly EncodedBlock[];

interface BlockKey {
  readonly number: number;
  readonly first: number;
  readonly last: number;
  readonly count: number;
}

export class PointStore {
  readonly #beforeBlock: () => void;
  readonly #before: StatementSync;
  readonly #after: StatementSync;
  readonly #data: StatementSync;
  readonly #insert: StatementSync;
  readonly #delete: StatementSync;
  readonly #scan: StatementSync;
  readonly #scanBack: StatementSync;
  readonly #nextSignal: StatementSync;
  readonly #expire: StatementSync;
  readonly #last: StatementSync;
  /** The last block of signals that were written, so that appending needs no query. */
  readonly #lastBlocks = new Map<number, BlockKey>();

  /** Calls `beforeBlock` before a scan reads a block; an error thrown by it ends the scan. */
  constructor(db: DatabaseSync, beforeBlock = () => {}) {
    this.#beforeBlock = beforeBlock;
    const key = "SELECT number, first, last, count FROM block WHERE signal = ?";
    this.#before = db.prepare(`${key} AND first <= ? ORDER BY first DESC LIMIT 1`);
    this.#after = db.prepare(`${key} AND first > ? ORDER BY first LIMIT 1`);
    this.#last = db.prepare(`${key} ORDER BY first DESC LIMIT 1`);
    this.#data = db.prepare("SELECT data FROM block WHERE number = ?");
    this.#insert = db.prepare("INSERT INTO block (signal, first, last, count, data) VALUES (?, ?, ?, ?, ?)");
    this.#delete = db.prepare("DELETE FROM block WHERE number = ?");
    // The block with `from` is the last that begins at or before it, since blocks do not overlap.
    const inRange = `SELECT data FROM block WHERE signal = ?1 AND first < ?3 AND last >= ?2
      AND first >= coalesce((SELECT max(first) FROM block WHERE signal = ?1 AND first <= ?2), ?2) ORDER BY first`;
    this.#scan = db.prepare(inRange);
    this.#scanBack = db.prepare(`${inRange} DESC`);
    this.#nextSignal = db.prepare("SELECT min(signal) AS signal FROM block WHERE signal > ?");
    // Uses the index; comparing `last` of every block would read the whole file.
    this.#expire = db.prepare("DELETE FROM block WHERE signal = ?1 AND first < ?2 AND last < ?2");
  }

  /** Stores `run`, replacing points at the same times. Call it within a transaction. */
  write(signal: number, run: PointRun): void {
    if (!("times" in run)) {
      if (!this.#append(signal, run)) this.write(signal, decodedRun(run));
      return;
    }
    for (let at = 0; at < run.times.length; ) {
      const time = run.times[at]!;
      const [before, after] = this.#around(signal, time);
      const end = after ? indexOfTime(run.times, after.first, at) : run.times.length;
      this.#place(signal, sliceColumns(run, at, end), before, after);
      at = end;
    }
  }

  /** Yields the points from `from` to before `before` by blocks; `backwards`: last block first. Reads lazily. */
  *scan(signal: number, from: number, before: number, backwards = false): Generator<BlockColumns> {
    for (const row of (backwards ? this.#scanBack : this.#scan).iterate(signal, from, before)) {
      this.#beforeBlock();
      const block = decodePoints(blob(row));
      const start = indexOfTime(block.times, from);
      const end = indexOfTime(block.times, before, start);
      if (end > start) yield sliceColumns(block, start, end);
    }
  }

  /** To be called after a rollback. */
  reload(): void {
    this.#lastBlocks.clear();
  }

  /** Deletes blocks whose points are all older than `before`. Returns their number. */
  expire(before: number): number {
    let deleted = 0;
    this.#lastBlocks.clear();
    for (let signal = this.#signalAfter(0); signal !== undefined; signal = this.#signalAfter(signal))
      deleted += Number(this.#expire.run(signal, before).changes);
    return deleted;
  }

  /** Stores blocks as they are. Returns false without effect if a neighbour overlaps or joins them. */
  #append(signal: number, blocks: readonly EncodedBlock[]): boolean {
    const first = blocks[0]?.first;
    const last = blocks.at(-1)?.last;
    if (first === undefined || last === undefined) return true;
    const points = blocks.reduce((sum, { count }) => sum + count, 0);
    const joinable = points < longRun;
    const [before, after] = this.#around(signal, first);
    if (before && (before.last >= first || (joinable && joins(before, points)))) return false;
    if (after && (after.first <= last || (joinable && joins(after, points)))) return false;
    this.#insertBlocks(signal, blocks, !after);
    return true;
  }

  /** Stores a run that lies between the first times of `before` and `after`. */
  #place(signal: number, run: BlockColumns, before: BlockKey | undefined, after: BlockKey | undefined): void {
    const mayJoin = run.times.length < longRun;
    let merged = run;
    let left = before;
    while (left && (left.last >= merged.times[0]! || (mayJoin && joins(left, merged.times.length)))) {
      merged = mergeColumns(this.#take(left), merged);
      left = this.#key(this.#before.get(signal, merged.times[0]! - 1));
    }
    let right = after;
    while (right && mayJoin && joins(right, merged.times.length)) {
      merged = mergeColumns(merged, this.#take(right));
      right = this.#key(this.#after.get(signal, merged.times.at(-1)!));
    }
    this.#insertBlocks(signal, encodedBlocks(merged), !right);
  }

  #insertBlocks(signal: number, blocks: Iterable<EncodedBlock>, atEnd: boolean): void {
    let key: BlockKey | undefined;
    for (const { first, last, count, data } of blocks) {
      const { lastInsertRowid } = this.#insert.run(signal, first, last, count, data);
      key = { number: Number(lastInsertRowid), first, last, count };
    }
    if (!key || !atEnd) return;
    if (this.#lastBlocks.size >= maxLastBlocks) this.#lastBlocks.clear();
    this.#lastBlocks.set(signal, key);
  }

  /** The last block that begins at or before `time`, and the first one after it. */
  #around(signal: number, time: number): readonly [before: BlockKey | undefined, after: BlockKey | undefined] {
    const last = this.#lastBlocks.get(signal) ?? this.#key(this.#last.get(signal));
    if (!last || last.first <= time) return [last, undefined];
    return [this.#key(this.#before.get(signal, time)), this.#key(this.#after.get(signal, time))];
  }

  #signalAfter(signal: number): number | undefined {
    return (this.#nextSignal.get(signal) as { readonly signal: number | null }).signal ?? undefined; // an aggregate always has a row
  }

  #take(block: BlockKey): BlockColumns {
    const columns = decodePoints(blob(this.#data.get(block.number)));
    this.#delete.run(block.number);
    return columns;
  }

  #key(row: unknown): BlockKey | undefined {
    return row === undefined ? undefined : (row as BlockKey); // columns of our own table, NOT NULL
  }
}

/** Whether a run of so many points absorbs the block. */
function joins(block: BlockKey, points: number): boolean {
  return block.count <= points && block.count + points <= fullBlock;
}

function blob(row: unknown): Uint8Array {
  return (row as { readonly data: Uint8Array }).data; // a column of our own table, NOT NULL
}
