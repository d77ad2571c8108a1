// Gathers points of many calls into one write and one sync.
import { AgentError } from "../../../core/errors.ts";
import type { InputId, Point } from "../../../core/point.ts";
import type { Clock } from "../../../core/runtime.ts";
import { InputTable } from "../format/input-table.ts";
import { keepSameTime, type PointColumns } from "../format/point-columns.ts";

export interface GroupCommitOptions {
  readonly clock: Clock;
  /** Milliseconds that points may gather for when somebody waits for their acknowledgement. */
  readonly ackDelayMs: number;
  /** Milliseconds that others may gather for. */
  readonly syncMs: number;
  /** Resolves when the points are durable. `newInputs` are the Input IDs that follow those of earlier calls. */
  readonly send: (group: PointColumns, newInputs: readonly InputId[]) => Promise<void>;
}

interface Group {
  readonly done: PromiseWithResolvers<void>;
  /** Monotonic milliseconds at which it is sent, unless an earlier group is not back yet. */
  dueAt: number;
}

/** So many points are not kept waiting for more. */
const enough = 4_096;

/** At most one group is on its way; the next one gathers meanwhile. */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #inputs = new InputTable();
  #inputsSent = 0;
  #columns = columns(1_024);
  #count = 0;
  #gathering: Group | undefined;
  #sending: Promise<void> | undefined;
  #timer: { readonly at: number; readonly controller: AbortController } | undefined;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
  }

  /** Resolves when the points are durable; rejects as `send` does. Throws `TypeError` for times that are no microseconds. */
  append(points: readonly Point[], awaited: boolean): Promise<void> {
    if (points.length === 0) return Promise.resolve();
    for (const { time } of points)
      if (!Number.isSafeInteger(time)) throw new TypeError(`a time must be whole microseconds, is ${time}`);
    const { clock, ackDelayMs, syncMs } = this.#options;
    const now = clock.monotonic();
    this.#gather(points);
    const dueAt = this.#count >= enough ? now : now + (awaited ? ackDelayMs : Math.max(syncMs, ackDelayMs));
    this.#gathering ??= { done: Promise.withResolvers(), dueAt };
    this.#gathering.dueAt = Math.min(this.#gathering.dueAt, dueAt);
    const { promise } = this.#gathering.done;
    this.#sendWhenDue();
    return promise;
  }

  /** Who receives the groups has changed and knows no Input IDs yet. */
  forgetSent(): void {
    this.#inputsSent = 0;
  }

  /** Sends what has gathered and resolves when nothing is on its way any more. */
  async flush(): Promise<void> {
    while (this.#gathering || this.#sending) {
      if (this.#gathering) this.#gathering.dueAt = Number.NEGATIVE_INFINITY;
      this.#sendWhenDue();
      await this.#sending;
    }
  }

  #gather(points: readonly Point[]): void {
    const needed = this.#count + points.length;
    if (needed > this.#columns.inputs.length) {
      const grown = columns(2 ** Math.ceil(Math.log2(needed)));
      grown.inputs.set(this.#columns.inputs);
      grown.times.set(this.#columns.times);
      grown.values.set(this.#columns.values);
      this.#columns = grown;
    }
    const { inputs, times, values } = this.#columns;
    let at = this.#count;
    for (const { input, time, value, sameTime } of points) {
      inputs[at] = this.#inputs.numberOf(input) + (sameTime === "keep" ? keepSameTime : 0);
      times[at] = time;
      values[at] = value;
      at++;
    }
    this.#count = at;
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
    this.#sending = this.#send(group).finally(() => {
      this.#sending = undefined;
      this.#sendWhenDue();
    });
  }

  async #send(group: Group): Promise<void> {
    const count = this.#count;
    this.#count = 0;
    const { inputs, times, values } = this.#columns;
    const part = {
      inputs: inputs.slice(0, count),
      times: times.slice(0, count),
      values: values.slice(0, count),
      count,
    };
    if (inputs.length > 16 * enough) this.#columns = columns(1_024);
    const newInputs = this.#inputs.since(this.#inputsSent);
    this.#inputsSent += newInputs.length;
    try {
      await this.#options.send(part, newInputs);
      group.done.resolve();
    } catch (error) {
      group.done.reject(error);
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
        // Aborted: another wake-up took its place.
      },
    );
  }
}

function columns(size: number): Omit<PointColumns, "count"> {
  return { inputs: new Uint32Array(size), times: new Float64Array(size), values: new Float64Array(size) };
}

/** What a caller gets for an append after the buffer was closed. */
export function closedError(): AgentError {
  return new AgentError("BUFFER_UNAVAILABLE", "the buffer is closed");
}
