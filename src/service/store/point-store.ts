// Points of all signals as blocks in SQLite. Blocks of a signal never overlap, and the last write of a time wins.
// Small writes are merged as in a binary counter: a new run absorbs neighbours that are not longer. Long runs are not
// merged, since that would take most of the time of a large insert.
import type { DatabaseSync } from "node:sqlite";
import { lowerBound } from "../../lib/values/lists.ts";
import { type BlockColumns, decodePoints } from "./block-format.ts";
import { decodedRun, type EncodedBlock, encodedBlocks, fullBlock, mergeColumns, sliceColumns } from "./point-run.ts";

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

export type PointStore = ReturnType<typeof pointStore>;

/** Calls `beforeBlock` before a scan reads a block; an error thrown by it ends the scan. */
export function pointStore(db: DatabaseSync, beforeBlock = () => {}) {
  /** The last block of signals that were written, so that appending needs no query. */
  const lastBlocks = new Map<number, BlockKey>();
  const key = "SELECT number, first, last, count FROM block WHERE signal = ?";
  const lastUpTo = db.prepare(`${key} AND first <= ? ORDER BY first DESC LIMIT 1`);
  const firstAfter = db.prepare(`${key} AND first > ? ORDER BY first LIMIT 1`);
  const lastOf = db.prepare(`${key} ORDER BY first DESC LIMIT 1`);
  const data = db.prepare("SELECT data FROM block WHERE number = ?");
  const insertBlock = db.prepare("INSERT INTO block (signal, first, last, count, data) VALUES (?, ?, ?, ?, ?)");
  const deleteBlock = db.prepare("DELETE FROM block WHERE number = ?");
  // The block with `from` is the last that begins at or before it, since blocks do not overlap.
  const inRange = `SELECT data FROM block WHERE signal = ?1 AND first < ?3 AND last >= ?2
    AND first >= coalesce((SELECT max(first) FROM block WHERE signal = ?1 AND first <= ?2), ?2) ORDER BY first`;
  const scanOn = db.prepare(inRange);
  const scanBack = db.prepare(`${inRange} DESC`);
  const nextSignal = db.prepare("SELECT min(signal) AS signal FROM block WHERE signal > ?");
  // Uses the index; comparing `last` of every block would read the whole file.
  const expireBlocks = db.prepare("DELETE FROM block WHERE signal = ?1 AND first < ?2 AND last < ?2");

  /** Stores blocks as they are. Returns false without effect if a neighbour overlaps or joins them. */
  function append(signal: number, blocks: readonly EncodedBlock[]): boolean {
    const first = blocks[0]?.first;
    const last = blocks.at(-1)?.last;
    if (first === undefined || last === undefined) return true;
    const points = blocks.reduce((sum, { count }) => sum + count, 0);
    const joinable = points < longRun;
    const [before, after] = around(signal, first);
    if (before && (before.last >= first || (joinable && joins(before, points)))) return false;
    if (after && (after.first <= last || (joinable && joins(after, points)))) return false;
    insertBlocks(signal, blocks, !after);
    return true;
  }

  /** Stores a run that lies between the first times of `before` and `after`. */
  function place(signal: number, run: BlockColumns, before: BlockKey | undefined, after: BlockKey | undefined): void {
    const mayJoin = run.times.length < longRun;
    let merged = run;
    let left = before;
    while (left && (left.last >= merged.times[0]! || (mayJoin && joins(left, merged.times.length)))) {
      merged = mergeColumns(take(left), merged);
      left = keyOf(lastUpTo.get(signal, merged.times[0]! - 1));
    }
    let right = after;
    while (right && mayJoin && joins(right, merged.times.length)) {
      merged = mergeColumns(merged, take(right));
      right = keyOf(firstAfter.get(signal, merged.times.at(-1)!));
    }
    insertBlocks(signal, encodedBlocks(merged), !right);
  }

  function insertBlocks(signal: number, blocks: Iterable<EncodedBlock>, atEnd: boolean): void {
    let key: BlockKey | undefined;
    for (const { first, last, count, data } of blocks) {
      const { lastInsertRowid } = insertBlock.run(signal, first, last, count, data);
      key = { number: Number(lastInsertRowid), first, last, count };
    }
    if (!key || !atEnd) return;
    if (lastBlocks.size >= maxLastBlocks) lastBlocks.clear();
    lastBlocks.set(signal, key);
  }

  /** The last block that begins at or before `time`, and the first one after it. */
  function around(signal: number, time: number): readonly [before: BlockKey | undefined, after: BlockKey | undefined] {
    const last = lastBlocks.get(signal) ?? keyOf(lastOf.get(signal));
    if (!last || last.first <= time) return [last, undefined];
    return [keyOf(lastUpTo.get(signal, time)), keyOf(firstAfter.get(signal, time))];
  }

  function signalAfter(signal: number): number | undefined {
    return (nextSignal.get(signal) as { readonly signal: number | null }).signal ?? undefined; // an aggregate always has a row
  }

  function take(block: BlockKey): BlockColumns {
    const columns = decodePoints(blob(data.get(block.number)));
    deleteBlock.run(block.number);
    return columns;
  }

  function keyOf(row: unknown): BlockKey | undefined {
    return row === undefined ? undefined : (row as BlockKey); // columns of our own table, NOT NULL
  }

  /** Stores `run`, replacing points at the same times. Call it within a transaction. */
  function write(signal: number, run: PointRun): void {
    if (!("times" in run)) {
      if (!append(signal, run)) write(signal, decodedRun(run));
      return;
    }
    for (let at = 0; at < run.times.length; ) {
      const time = run.times[at]!;
      const [before, after] = around(signal, time);
      const end = after ? lowerBound(run.times, after.first, at) : run.times.length;
      place(signal, sliceColumns(run, at, end), before, after);
      at = end;
    }
  }

  return {
    write,
    /** Yields the points from `from` to before `before` by blocks; `backwards`: last block first. Reads lazily. */
    *scan(signal: number, from: number, before: number, backwards = false): Generator<BlockColumns> {
      for (const row of (backwards ? scanBack : scanOn).iterate(signal, from, before)) {
        beforeBlock();
        const block = decodePoints(blob(row));
        const start = lowerBound(block.times, from);
        const end = lowerBound(block.times, before, start);
        if (end > start) yield sliceColumns(block, start, end);
      }
    },
    /** To be called after a rollback. */
    reload(): void {
      lastBlocks.clear();
    },
    /** Deletes blocks whose points are all older than `before`. Returns their number. */
    expire(before: number): number {
      let deleted = 0;
      lastBlocks.clear();
      for (let signal = signalAfter(0); signal !== undefined; signal = signalAfter(signal))
        deleted += Number(expireBlocks.run(signal, before).changes);
      return deleted;
    },
  };
}

/** Whether a run of so many points absorbs the block. */
function joins(block: BlockKey, points: number): boolean {
  return block.count <= points && block.count + points <= fullBlock;
}

function blob(row: unknown): Uint8Array {
  return (row as { readonly data: Uint8Array }).data; // a column of our own table, NOT NULL
}
