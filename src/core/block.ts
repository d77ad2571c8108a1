// Stored and leased points in columns, one series after the other.
import type { InputId } from "./point.ts";

/** Identifies a block for the lifetime of the buffer, across restarts. */
export type BlockId = number & { readonly [blockId]: true };
declare const blockId: unique symbol;

/** Points of one input in columns of equal length, in ascending time; equal times keep the order of their appends. */
export interface Series {
  readonly input: InputId;
  /** Microseconds since the epoch (`EpochMicros`). */
  readonly times: Float64Array;
  readonly values: Float64Array;
  /**
   * At least one point was appended after a point with the same or a later time. It may therefore replace a point of a
   * block leased earlier, and must not reach the service before that point. Only the backlog has late series. In all
   * other series each point is the first of its input and time.
   */
  readonly late?: boolean;
}

export interface SeriesColumns {
  /** Input of each series. Blocks with the same series may share the array. */
  readonly inputs: readonly InputId[];
  /** Start of the times and values of each series, which may share times. `valueStarts` ends with the total length. */
  readonly timeStarts: Uint32Array;
  readonly valueStarts: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
  /** 1 for each series that is `late`. */
  readonly late: Uint8Array;
}

export class Block implements SeriesColumns {
  readonly id: BlockId;
  readonly inputs: readonly InputId[];
  readonly timeStarts: Uint32Array;
  readonly valueStarts: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
  readonly late: Uint8Array;

  constructor(id: BlockId, { inputs, timeStarts, valueStarts, times, values, late }: SeriesColumns) {
    this.id = id;
    this.inputs = inputs;
    this.timeStarts = timeStarts;
    this.valueStarts = valueStarts;
    this.times = times;
    this.values = values;
    this.late = late;
  }

  static of(id: BlockId, series: readonly Series[]): Block {
    const valueStarts = new Uint32Array(series.length + 1);
    for (const [i, { values }] of series.entries()) valueStarts[i + 1] = valueStarts[i]! + values.length;
    const points = valueStarts[series.length]!;
    const columns = { times: new Float64Array(points), values: new Float64Array(points) };
    for (const [i, { times, values }] of series.entries()) {
      columns.times.set(times, valueStarts[i]);
      columns.values.set(values, valueStarts[i]);
    }
    return new Block(id, {
      ...columns,
      inputs: series.map(({ input }) => input),
      timeStarts: valueStarts,
      valueStarts,
      late: Uint8Array.from(series, ({ late }) => (late === true ? 1 : 0)),
    });
  }

  get points(): number {
    return this.valueStarts[this.inputs.length]!;
  }

  get isLate(): boolean {
    return this.late.includes(1);
  }

  /** Allocates an object and two views for each series: not for blocks with many series. */
  get series(): Series[] {
    return this.inputs.map((input, i) => {
      const [from, to] = [this.valueStarts[i]!, this.valueStarts[i + 1]!];
      const time = this.timeStarts[i]!;
      return {
        input,
        times: this.times.subarray(time, time + to - from),
        values: this.values.subarray(from, to),
        late: this.late[i] === 1,
      };
    });
  }
}
