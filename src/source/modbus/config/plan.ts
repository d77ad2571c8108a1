// Plans the requests for a set of values: as few as possible, then as few registers as possible. Pure.
//
// A request covers consecutive values, never splits a value, and includes gaps of at most `maxGap` registers.
import type { ReadRequest } from "./pdu.ts";
import { isRegisterTable, type Table } from "./registers.ts";

export type Span = Pick<ReadRequest, "table" | "start" | "count">;

/** One request and its values, by ascending start; all lie within. */
export interface ReadBlock<Item extends Span> extends Span {
  readonly items: readonly Item[];
}

export interface Limits {
  readonly maxRegisters: number;
  readonly maxBits: number;
  /** Limit in registers; eight times as many bits. */
  readonly maxGap: number;
  /** Unused addresses that must not be read. */
  readonly forbid?: readonly Range[] | undefined;
  /** Boundaries that no request may cross, learned from the device. */
  readonly cuts?: readonly BlockBoundary[];
}

/** Addresses `from` to `to`, both included. */
export interface Range {
  readonly table: Table;
  readonly from: number;
  readonly to: number;
}

/** The boundary between `address` − 1 and `address`. */
export interface BlockBoundary {
  readonly table: Table;
  readonly address: number;
}

/** Every item is in exactly one block. An item longer than the limit gets a block of its own. */
export function plan<Item extends Span>(items: readonly Item[], limits: Limits): readonly ReadBlock<Item>[] {
  const byTable = Map.groupBy(items, (item) => item.table);
  return [...byTable].flatMap(([table, ofTable]) => {
    const registers = isRegisterTable(table);
    return planTable(ofTable, {
      max: registers ? limits.maxRegisters : limits.maxBits,
      maxGap: registers ? limits.maxGap : limits.maxGap * 8,
      forbid: (limits.forbid ?? []).filter((range) => range.table === table),
      cuts: (limits.cuts ?? []).filter((cut) => cut.table === table).map((cut) => cut.address),
    });
  });
}

interface TableLimits {
  readonly max: number;
  readonly maxGap: number;
  readonly forbid: readonly Range[];
  readonly cuts: readonly number[];
}

interface Place<Item> {
  readonly start: number;
  readonly end: number;
  readonly items: Item[];
}

function planTable<Item extends Span>(items: readonly Item[], limits: TableLimits): readonly ReadBlock<Item>[] {
  // An item that spans a cut is read alone.
  const { alone = [], others = [] } = Object.groupBy(items, ({ start, count }) =>
    limits.cuts.some((at) => start < at && at < start + count) ? "alone" : "others",
  );
  const byPlace = Map.groupBy(alone, ({ start, count }) => `${start}+${count}`);
  return [...runs(others, limits), ...[...byPlace.values()].map(blockOf)].toSorted((a, b) => a.start - b.start);
}

/**
 * Dynamic programming: the cheapest plan to a place extends the cheapest plan to the start of its last run. The
 * earliest start only moves forward, so each place enters and leaves `candidates` once: linear time.
 */
function runs<Item extends Span>(items: readonly Item[], limits: TableLimits): readonly ReadBlock<Item>[] {
  const places = placesOf(items);
  const cuts = limits.cuts.toSorted((a, b) => a - b);
  const requests = new Uint32Array(places.length + 1);
  const moved = new Uint32Array(places.length + 1);
  /** Start of the last run. */
  const begins = new Uint32Array(places.length + 1);
  /** Possible starts of the last run, by ascending position and cost. */
  const candidates: number[] = [];
  let first = 0;
  let earliest = 0;
  let cut = Number.NEGATIVE_INFINITY;
  for (const [i, { start, end }] of places.entries()) {
    while ((cuts[0] ?? end) < end) cut = cuts.shift() ?? cut;
    if (i > 0 && !bridges(places[i - 1]!.end, start, limits)) earliest = i;
    while (earliest < i && (end - places[earliest]!.start > limits.max || places[earliest]!.start < cut)) earliest++;

    const carried = (from: number) => moved[from]! - places[from]!.start;
    const isDearer = (from: number) =>
      requests[from]! > requests[i]! || (requests[from] === requests[i] && carried(from) >= carried(i));
    while (candidates.length > first && isDearer(candidates.at(-1)!)) candidates.pop();
    candidates.push(i);
    while (candidates[first]! < earliest) first++;
    const from = candidates[first]!;
    requests[i + 1] = requests[from]! + 1;
    moved[i + 1] = carried(from) + end;
    begins[i + 1] = from;
  }

  const blocks: ReadBlock<Item>[] = [];
  for (let to = places.length; to > 0; to = begins[to]!)
    blocks.push(blockOf(places.slice(begins[to], to).flatMap((place) => place.items)));
  return blocks.reverse();
}

/** Places by ascending start and end; an item within a longer one shares its place. */
function placesOf<Item extends Span>(items: readonly Item[]): readonly Place<Item>[] {
  const places: Place<Item>[] = [];
  for (const item of items.toSorted((a, b) => a.start - b.start || b.count - a.count)) {
    const last = places.at(-1);
    const end = item.start + item.count;
    if (last && end <= last.end) last.items.push(item);
    else places.push({ start: item.start, end, items: [item] });
  }
  return places;
}

/** Whether a request may include the range between `end` and `start`. */
function bridges(end: number, start: number, { maxGap, forbid }: TableLimits): boolean {
  if (start <= end) return true;
  return start - end <= maxGap && !forbid.some((range) => overlaps(range, end, start));
}

export function touches({ table, start, count }: Span, ranges: readonly Range[]): boolean {
  return ranges.some((range) => range.table === table && overlaps(range, start, start + count));
}

/** `end` is exclusive. */
function overlaps({ from, to }: Range, start: number, end: number): boolean {
  return from < end && to >= start;
}

/** Splits a block at its widest gap, else in the middle. Undefined if it has only one place. */
export function split<Item extends Span>({
  items,
}: ReadBlock<Item>): readonly [ReadBlock<Item>, ReadBlock<Item>] | undefined {
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

/** One block per place: the smallest possible requests. */
export function places<Item extends Span>({ items }: { readonly items: readonly Item[] }): readonly ReadBlock<Item>[] {
  const byPlace = Map.groupBy(items, ({ table, start, count }) => `${table}:${start}+${count}`);
  return [...byPlace.values()].map(blockOf);
}

function blockOf<Item extends Span>(items: readonly Item[]): ReadBlock<Item> {
  const first = items[0]!; // a block has at least one
  const end = items.reduce((furthest, item) => Math.max(furthest, item.start + item.count), 0);
  return { table: first.table, start: first.start, count: end - first.start, items };
}
