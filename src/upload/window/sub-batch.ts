// Points that left the window because the service refused their frame.
import type { InputId } from "../../core/point.ts";
import type { Frame } from "../../core/sink.ts";
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import {
  type ColumnSource,
  columnOverhead,
  type FramePlan,
  nullBytes,
  PlannedColumns,
  type QueueColumns,
  timeOverhead,
} from "../packing/frame.ts";
import { lookupWork, RowSet } from "../packing/shared-times.ts";
import { numberForm, scaledNumber, textLength, timeLength } from "../series/number-text.ts";
import { Columns } from "../series/point-memory.ts";

/** Cost of determining the text of a number, in points. */
const formWork = 8;
const perStep = stepWork / formWork;

/** Points of one series with the block number of each. */
export class SubBatchColumn implements ColumnSource {
  readonly input: InputId;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly blocks: Float64Array;

  constructor(input: InputId, times: Float64Array, values: Float64Array, blocks: Float64Array) {
    this.input = input;
    this.times = times;
    this.values = values;
    this.blocks = blocks;
  }

  get count(): number {
    return this.times.length;
  }

  *read(count: number, into: Columns, what: "points" | "values" = "points"): Steps<boolean> {
    // Whether times ascend is known only after all are read.
    if (what === "values") return false;
    into.reserve(count);
    into.times.set(this.times.subarray(0, count));
    let ascending = true;
    for (let from = 0; from < count; from += perStep) {
      const to = Math.min(count, from + perStep);
      for (let i = from; i < to; i++) {
        const form = numberForm(this.values[i]!);
        into.forms[i] = form;
        into.values[i] = scaledNumber(this.values[i]!, form);
        if (i > 0 && this.times[i]! <= this.times[i - 1]!) ascending = false;
      }
      yield (to - from) * formWork;
    }
    into.count = count;
    if (!ascending) yield* into.sort();
    return true;
  }

  followedBy(other: SubBatchColumn): SubBatchColumn {
    const times = new Float64Array(this.count + other.count);
    const values = new Float64Array(this.count + other.count);
    const blocks = new Float64Array(this.count + other.count);
    times.set(this.times);
    times.set(other.times, this.count);
    values.set(this.values);
    values.set(other.values, this.count);
    blocks.set(this.blocks);
    blocks.set(other.blocks, this.count);
    return new SubBatchColumn(this.input, times, values, blocks);
  }

  part(from: number, to: number): SubBatchColumn {
    const { times, values, blocks } = this;
    return new SubBatchColumn(
      this.input,
      times.subarray(from, to),
      values.subarray(from, to),
      blocks.subarray(from, to),
    );
  }
}

/** Points that are sent together to find a refused one. */
export class SubBatch {
  readonly columns: readonly SubBatchColumn[];
  readonly points: number;

  constructor(columns: readonly SubBatchColumn[]) {
    this.columns = columns;
    this.points = columns.reduce((points, { count }) => points + count, 0);
  }

  /** Two halves by series or, for a single series, by time. Undefined: a single point. */
  halves(): [SubBatch, SubBatch] | undefined {
    const [first] = this.columns;
    if (this.points < 2 || !first) return undefined;
    if (this.columns.length === 1) {
      const middle = first.count >> 1;
      return [new SubBatch([first.part(0, middle)]), new SubBatch([first.part(middle, first.count)])];
    }
    let points = 0;
    let columns = 0;
    while (columns < this.columns.length - 1 && points < this.points / 2) points += this.columns[columns++]!.count;
    return [new SubBatch(this.columns.slice(0, columns)), new SubBatch(this.columns.slice(columns))];
  }

  /** Splits into the series of `inputs` and the others. Undefined: one of the two would be empty. */
  divide(inputs: ReadonlySet<InputId>): [named: SubBatch, others: SubBatch] | undefined {
    const named = this.columns.filter(({ input }) => inputs.has(input));
    if (named.length === 0 || named.length === this.columns.length) return undefined;
    return [new SubBatch(named), new SubBatch(this.columns.filter(({ input }) => !inputs.has(input)))];
  }

  *plan(envelopeBytes: number): Steps<FramePlan<SubBatchColumn>> {
    const rows = new RowSet();
    const column = new Columns();
    let bytes = envelopeBytes;
    let cells = 0;
    for (const source of this.columns) {
      yield* source.read(source.count, column);
      const { times, forms, count } = column;
      bytes += source.input.length + columnOverhead;
      cells += count;
      for (let from = 0; from < count; from += perStep) {
        const to = Math.min(count, from + perStep);
        yield* rows.reserve(rows.size + to - from);
        for (let i = from; i < to; i++) {
          bytes += textLength(forms[i]!) + 1;
          if (rows.add(times[i]!)) bytes += timeLength(times[i]!) + timeOverhead;
        }
        yield (to - from) * lookupWork;
      }
    }
    const nulls = rows.size * this.columns.length - cells;
    return {
      times: yield* rows.sorted(),
      columns: PlannedColumns.all(this.columns),
      points: this.points,
      nulls,
      bytes: bytes + nulls * nullBytes,
    };
  }
}

/** A request with the origin of its points, which determines how to handle the answer. */
export type InFlightRequest =
  | {
      readonly kind: "fresh";
      readonly frame: Frame;
      /** Points to remove from the window on acceptance. */
      readonly parts: QueueColumns;
      /** When its oldest fresh point was leased, in monotonic milliseconds. Undefined: all points are backlog. */
      readonly since: number | undefined;
    }
  /** Part of a refused frame. */
  | { readonly kind: "suspect"; readonly frame: Frame; readonly subBatch: SubBatch }
  /** A retry of parked inputs. `rest`: leased points that are not sent yet. */
  | {
      readonly kind: "probe";
      readonly frame: Frame;
      readonly subBatch: SubBatch;
      readonly rest: readonly SubBatchColumn[];
    };
