// Group commit: combines the points of many calls in one write and one sync.
import type { AppendOptions } from "../../../core/buffer.ts";
import { AgentError } from "../../../core/errors.ts";
import type { InputId, Point, PointBatch } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import { InputTable, keepSameTime, type PointColumns, pointColumns } from "../format/input-table.ts";

export interface GroupCommitOptions {
  readonly clock: Clock;
  /** Maximum delay in milliseconds of points whose acknowledgement a device waits for. */
  readonly ackDelayMs: number;
  /** The same for deliveries with `hurry`. */
  readonly hurryDelayMs: number;
  /** Maximum delay in milliseconds of all other points. */
  readonly syncMs: number;
  /** Resolves when the points are durable. `newInputs` continues the numbering of earlier calls. */
  readonly send: (group: PointColumns, newInputs: readonly InputId[]) => Promise<void>;
}

interface Group {
  readonly done: PromiseWithResolvers<void>;
  /** Monotonic time in milliseconds to send the group, or later if an earlier group is still being sent. */
  dueAt: number;
}

/** A group with this many points is sent without delay. */
const enough = 4_096;
/** Shortest list of inputs whose numbers are cached. */
const cachedLength = 64;

/** At most one group is being sent; the next one gathers meanwhile. */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #inputs = new InputTable();
  /** Numbers of the inputs of long batches, which polled sources repeat. */
  readonly #numbers = new WeakMap<readonly InputId[], Uint32Array>();
  #inputsSent = 0;
  #columns = pointColumns(1_024);
  #count = 0;
  #gathering: Group | undefined;
  #sending: Promise<void> | undefined;
  #sentAt = 0;
  #timer: { readonly at: number; readonly controller: AbortController } | undefined;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  /** Resolves when the points are durable; rejects as `send` does. Throws `TypeError` for a fractional time. */
  append(points: readonly Point[] | PointBatch, { awaited, hurry }: AppendOptions): Promise<void> {
    if (points.length === 0) return Promise.resolve();
    const isBatch = "inputs" in points;
    if (isBatch) for (let i = 0; i < points.length; i++) checkTime(points.times[i]!);
    else for (const { time } of points) checkTime(time);
    const { clock, ackDelayMs, hurryDelayMs, syncMs } = this.#options;
    const now = clock.monotonic();
    this.#makeRoom(points.length);
    if (isBatch) this.#gatherBatch(points);
    else for (const { input, time, value, sameTime } of points) this.#gather(input, time, value, sameTime === "keep");
    const delayMs = awaited ? (hurry ? hurryDelayMs : ackDelayMs) : Math.max(syncMs, ackDelayMs);
    const group = (this.#gathering ??= { done: Promise.withResolvers(), dueAt: Number.POSITIVE_INFINITY });
    group.dueAt = Math.min(group.dueAt, this.#count >= enough ? now : now + delayMs);
    void hurry?.then(() => this.#hurry(group));
    this.#sendWhenDue();
    return group.done.promise;
  }

  /** Milliseconds for which the group being sent has had no answer. 0: none is being sent. */
  get unansweredMs(): number {
    return this.#sending ? this.#options.clock.monotonic() - this.#sentAt : 0;
  }

  /** To be called when the log thread was restarted: it does not know any Input IDs yet. */
  forgetSent(): void {
    this.#inputsSent = 0;
  }

  /** Sends all gathered points. Resolves when nothing is being sent any more. */
  async flush(): Promise<void> {
    while (this.#gathering || this.#sending) {
      if (this.#gathering) this.#hurry(this.#gathering);
      await this.#sending;
    }
  }

  #hurry(group: Group): void {
    group.dueAt = Number.NEGATIVE_INFINITY;
    this.#sendWhenDue();
  }

  #makeRoom(points: number): void {
    const needed = this.#count + points;
    if (needed > this.#columns.count)
      this.#columns = copyOf(this.#columns, this.#count, 2 ** Math.ceil(Math.log2(needed)));
  }

  #gatherBatch({ length, inputs, times, values, keeps }: PointBatch): void {
    const at = this.#count;
    this.#count += length;
    this.#columns.inputs.set(this.#numbersOf(inputs).subarray(0, length), at);
    this.#columns.times.set(times.subarray(0, length), at);
    this.#columns.values.set(values.subarray(0, length), at);
    if (keeps) for (let i = 0; i < length; i++) if (keeps[i] === 1) this.#columns.inputs[at + i]! += keepSameTime;
  }

  #numbersOf(inputs: readonly InputId[]): Uint32Array {
    let numbers = this.#numbers.get(inputs);
    if (numbers) return numbers;
    numbers = new Uint32Array(inputs.length);
    for (let i = 0; i < numbers.length; i++) numbers[i] = this.#inputs.numberOf(inputs[i]!);
    if (inputs.length >= cachedLength) this.#numbers.set(inputs, numbers);
    return numbers;
  }

  #gather(input: InputId, time: number, value: number, keeps: boolean): void {
    const { inputs, times, values } = this.#columns;
    const at = this.#count++;
    inputs[at] = this.#inputs.numberOf(input) + (keeps ? keepSameTime : 0);
    times[at] = time;
    values[at] = value;
  }

  #sendWhenDue(): void {
    const group = this.#gathering;
    if (!group || this.#sending) return;
    const wait = group.dueAt - this.#options.clock.monotonic();
    if (wait > 0) {
      this.#wakeAt(group.dueAt, wait);
      return;
    }
    this.#timer?.controller.abort();
    this.#timer = undefined;
    this.#gathering = undefined;
    this.#sentAt = this.#options.clock.monotonic();
    this.#sending = this.#send(group).finally(() => {
      this.#sending = undefined;
      this.#sendWhenDue();
    });
  }

  async #send({ done }: Group): Promise<void> {
    const count = this.#count;
    this.#count = 0;
    const group = copyOf(this.#columns, count, count);
    if (this.#columns.count > 16 * enough) this.#columns = pointColumns(1_024);
    const newInputs = this.#inputs.since(this.#inputsSent);
    this.#inputsSent += newInputs.length;
    try {
      await this.#options.send(group, newInputs);
      done.resolve();
    } catch (error) {
      done.reject(error);
    }
  }

  #wakeAt(at: number, ms: number): void {
    if (this.#timer && this.#timer.at <= at) return;
    this.#timer?.controller.abort();
    const controller = new AbortController();
    const timer = { at, controller };
    this.#timer = timer;
    this.#options.clock.sleep(ms, controller.signal).then(
      () => {
        if (this.#timer === timer) this.#timer = undefined;
        this.#sendWhenDue();
      },
      () => {
        // Aborted: a newer timer replaces this one.
      },
    );
  }
}

function checkTime(time: number): void {
  if (!Number.isSafeInteger(time)) throw new TypeError(`a time must be whole microseconds, is ${time}`);
}

function copyOf({ inputs, times, values }: PointColumns, count: number, size: number): PointColumns {
  const copy = pointColumns(size);
  copy.inputs.set(inputs.subarray(0, count));
  copy.times.set(times.subarray(0, count));
  copy.values.set(values.subarray(0, count));
  return copy;
}

export function closedError(): AgentError {
  return new AgentError("BUFFER_UNAVAILABLE", "the buffer is closed");
}
