// Points as they are kept and leased: the series behind each other, in columns.
import type { InputId } from "./point.ts";

/** Names a block for as long as the buffer lives, restarts included. */
export type BlockId = number & { readonly [blockId]: true };
declare const blockId: unique symbol;

/** Points of one input, in columns of the same length, by ascending time; those of one time in the order of their appends. */
export interface Series {
  readonly input: InputId;
  /** Microseconds since the epoch (`EpochMicros`). */
  readonly times: Float64Array;
  readonly values: Float64Array;
  /**
   * Some of its points had a time that was not after all appended before: they may replace points of blocks taken earlier,
   * and must not reach the service before those. Only the backlog has such series. All other points are the first of
   * their input and time.
   */
  readonly late?: boolean;
}

export interface SeriesColumns {
  /** Of each series. Blocks of the same series may share the list. */
  readonly inputs: readonly InputId[];
  /** Where the times and the values of each series begin; series may share times. `valueStarts` has one entry more. */
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

  /** Whether a series of it is late. */
  get isLate(): boolean {
    return this.late.includes(1);
  }

  /** An object and two views for each series: for few of them. */
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
