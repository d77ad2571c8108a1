// Which requests fetch which values: the fewest, and of those the ones that move the least. Pure.
//
// A request covers a run of values in the order of their addresses. It never splits a value, never exceeds the limit,
// and reads at most `maxGap` unused registers along between two values.
import type { Table } from "./value-type.ts";
import { isRegisterTable } from "./value-type.ts";

/** Where one value lies. */
export interface Span {
  readonly table: Table;
  readonly start: number;
  readonly count: number;
}

/** One request and the values that it fetches, by ascending start; all lie within. */
export interface Block<Item extends Span> extends Span {
  readonly items: readonly Item[];
}

export interface Limits {
  readonly maxRegisters: number;
  readonly maxBits: number;
  /** In registers; of bits eight times as many. */
  readonly maxGap: number;
  /** Addresses that may not be read along. */
  readonly forbid?: readonly Range[];
  /** Places that no request may reach across, as learned from the device. */
  readonly cuts?: readonly Cut[];
}

/** Addresses `from` to `to`, both included. */
export interface Range {
  readonly table: Table;
  readonly from: number;
  readonly to: number;
}

/** Between `address` − 1 and `address`. */
export interface Cut {
  readonly table: Table;
  readonly address: number;
}

/** Every item is in exactly one block. An item longer than the limit gets a block of its own. */
export function plan<Item extends Span>(items: readonly Item[], limits: Limits): readonly Block<Item>[] {
  const byTable = Map.groupBy(items, (item) => item.table);
  return [...byTable].flatMap(([table, ofTable]) => {
    const registers = isRegisterTable(table);
    const max = registers ? limits.maxRegisters : limits.maxBits;
    const maxGap = registers ? limits.maxGap : limits.maxGap * 8;
    const forbid = (limits.forbid ?? []).filter((range) => range.table === table);
    const cuts = (limits.cuts ?? []).filter((cut) => cut.table === table).map((cut) => cut.address);
    /** Whether a run from `start` that reached `end` may go on with `item`. */
    const joins = (start: number, end: number, item: Span) => {
      const newEnd = Math.max(end, item.start + item.count);
      return (
        item.start - end <= maxGap &&
        newEnd - start <= max &&
        (item.start <= end || !forbid.some(({ from, to }) => from < item.start && to >= end)) &&
        !cuts.some((cut) => start < cut && cut < newEnd)
      );
    };
    return planTable(
      ofTable.toSorted((a, b) => a.start - b.start || a.count - b.count),
      joins,
    );
  });
}

/** The cheapest way to fetch items up to some index. */
interface Best {
  readonly requests: number;
  readonly moved: number;
  /** Where the last run begins. */
  readonly from: number;
}

function planTable<Item extends Span>(
  items: readonly Item[],
  joins: (start: number, end: number, item: Span) => boolean,
): readonly Block<Item>[] {
  const best: (Best | undefined)[] = [{ requests: 0, moved: 0, from: 0 }];
  const offer = (index: number, candidate: Best) => {
    const known = best[index];
    const better =
      !known ||
      candidate.requests < known.requests ||
      (candidate.requests === known.requests && candidate.moved <= known.moved);
    if (better) best[index] = candidate;
  };
  items.forEach((first, from) => {
    const { requests, moved } = best[from]!; // a run of one ends here at least
    let end = first.start;
    for (let i = from; i < items.length; i++) {
      const item = items[i]!;
      if (i > from && !joins(first.start, end, item)) break;
      end = Math.max(end, item.start + item.count);
      offer(i + 1, { requests: requests + 1, moved: moved + end - first.start, from });
    }
  });

  const blocks: Block<Item>[] = [];
  for (let to = items.length; to > 0; ) {
    const { from } = best[to]!;
    blocks.push(blockOf(items.slice(from, to)));
    to = from;
  }
  return blocks.reverse();
}

/** Two smaller blocks with the same items, cut at the widest gap, else in the middle; undefined: there is one place only. */
export function split<Item extends Span>({ items }: Block<Item>): readonly [Block<Item>, Block<Item>] | undefined {
  let cut: { readonly at: number; readonly gap: number; readonly offCentre: number } | undefined;
  let end = 0;
  for (const [at, item] of items.entries()) {
    const before = items[at - 1];
    if (before && (before.start !== item.start || before.count !== item.count)) {
      const gap = Math.max(0, item.start - end);
      const offCentre = Math.abs(at - items.length / 2);
      if (!cut || gap > cut.gap || (gap === cut.gap && offCentre < cut.offCentre)) cut = { at, gap, offCentre };
    }
    end = Math.max(end, item.start + item.count);
  }
  return cut && [blockOf(items.slice(0, cut.at)), blockOf(items.slice(cut.at))];
}

function blockOf<Item extends Span>(items: readonly Item[]): Block<Item> {
  const first = items[0]!; // a block holds at least one
  const end = Math.max(...items.map((item) => item.start + item.count));
  return { table: first.table, start: first.start, count: end - first.start, items };
}
