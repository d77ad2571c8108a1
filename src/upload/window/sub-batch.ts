// Points that left the window because the service refused their frame.
import type { InputId } from "../../core/point.ts";
import type { Frame } from "../../core/sink.ts";
import type { Steps } from "../../lib/flow/in-slices.ts";
import type { ColumnSource, FramePlan, QueueColumns } from "../packing/frame.ts";
import { FrameDraft } from "../packing/frame-draft.ts";
import { scaledNumber, unscaledNumber } from "../series/number-text.ts";
import { Columns } from "../series/point-memory.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

interface ExtractedPoints {
  readonly times: Float64Array;
  readonly values: Float64Array;
  /** `NumberForm` of each value. */
  readonly forms: Uint8Array;
  /** Block number of each point. */
  readonly blocks: Float64Array;
}

/** Points of one series in order of arrival. */
export class SubBatchColumn implements ColumnSource, ExtractedPoints {
  readonly input: InputId;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly forms: Uint8Array;
  readonly blocks: Float64Array;

  constructor(input: InputId, { times, values, forms, blocks }: ExtractedPoints) {
    this.input = input;
    this.times = times;
    this.values = values;
    this.forms = forms;
    this.blocks = blocks;
  }

  /** A copy of the oldest `count` points. */
  static of(queue: SeriesQueue, count: number): SubBatchColumn {
    const { times, values, forms } = queue.copy(count, new Columns(count), "points");
    for (let i = 0; i < count; i++) values[i] = unscaledNumber(values[i]!, forms[i]!);
    return new SubBatchColumn(queue.input, { times, values, forms, blocks: queue.blocks(count) });
  }

  get count(): number {
    return this.times.length;
  }

  read(count: number, into: Columns): boolean {
    const { times, values, forms } = this;
    into.reserve(count);
    let isAscending = true;
    for (let i = 0; i < count; i++) {
      into.times[i] = times[i]!;
      into.forms[i] = forms[i]!;
      into.values[i] = scaledNumber(values[i]!, forms[i]!);
      if (i > 0 && times[i]! <= times[i - 1]!) isAscending = false;
    }
    into.count = count;
    return isAscending;
  }

  followedBy({ times, values, forms, blocks }: SubBatchColumn): SubBatchColumn {
    return new SubBatchColumn(this.input, {
      times: joined(this.times, times),
      values: joined(this.values, values),
      forms: Buffer.concat([this.forms, forms]),
      blocks: joined(this.blocks, blocks),
    });
  }

  part(from: number, to: number): SubBatchColumn {
    const { input, times, values, forms, blocks } = this;
    return new SubBatchColumn(input, {
      times: times.subarray(from, to),
      values: values.subarray(from, to),
      forms: forms.subarray(from, to),
      blocks: blocks.subarray(from, to),
    });
  }
}

function joined(first: Float64Array, second: Float64Array): Float64Array {
  const both = new Float64Array(first.length + second.length);
  both.set(first);
  both.set(second, first.length);
  return both;
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

  /** Splits off the series of some inputs. Undefined: one of the two would be empty. */
  divide(isChosen: (input: InputId) => boolean): [others: SubBatch, chosen: SubBatch] | undefined {
    const { true: chosen, false: others } = Object.groupBy(this.columns, ({ input }) => `${isChosen(input)}` as const);
    return chosen && others && [new SubBatch(others), new SubBatch(chosen)];
  }

  *plan(envelopeBytes: number): Steps<FramePlan<SubBatchColumn>> {
    const draft = new FrameDraft<SubBatchColumn>();
    draft.begin(envelopeBytes, Number.POSITIVE_INFINITY);
    for (const column of this.columns) yield* draft.addInSteps(column, column.count);
    const { nulls, bytes, parts, points } = draft;
    return { times: yield* draft.times(), columns: parts, points, nulls, bytes };
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
