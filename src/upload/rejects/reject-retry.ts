// Sends refused points again next to the points of the buffer, in the requests of the running uploader.
//
//   buffer ──────────────┐
//                        ├─ take ──> window ──> request ──> settle ─┬─> buffer
//   rejects.retry.ndjson ┘                                         └─> counted here; the last one ends the retry
import type { Block, BlockId } from "../../core/block.ts";
import type { BufferReader, Lane, Settlement, TakeOptions } from "../../core/buffer.ts";
import { reasonOf } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { RejectFiles } from "./reject-files.ts";
import { RejectReader, restOf, sendableOf } from "./reject-reader.ts";
import type { Rejects } from "./rejects.ts";

export interface RetryProgress {
  readonly running: boolean;
  /** Points to send again. */
  readonly points: number;
  readonly accepted: number;
  /** Refused again, and stored with the new reason. */
  readonly refused: number;
  /** Points with an invalid time or value, which stay rejects. */
  readonly unsendable: number;
  /** Points that stay rejects with a new reason, since the service refuses their inputs at present. */
  readonly held: number;
  /** Why it refuses the first of these inputs. Undefined: there are none. */
  readonly heldReason?: string | undefined;
}

/** Inputs that the service does not accept at present, which the uploader retries at intervals. */
export interface RefusedInputs {
  /** Undefined: the service accepts the input. */
  reasonOf(input: InputId): string | undefined;
  /** Retries these inputs now. */
  hurry(inputs: Iterable<InputId>): void;
}

const stops = "the uploader stops";

export class RejectRetry {
  readonly #files: RejectFiles;
  readonly #rejects: Rejects;
  readonly #inputs: RefusedInputs;
  readonly #log: Logger;
  #reader: RejectReader | undefined;
  #progress: RetryProgress | undefined;
  #woken = new AbortController();
  #ended = false;

  constructor(files: RejectFiles, rejects: Rejects, inputs: RefusedInputs, log: Logger) {
    this.#files = files;
    this.#rejects = rejects;
    this.#inputs = inputs;
    this.#log = log;
  }

  /** The last retry since the uploader was opened. Undefined: none. */
  get progress(): RetryProgress | undefined {
    const reader = this.#reader;
    if (!reader || !this.#progress) return this.#progress;
    const { points, refused } = reader.settled;
    return { ...this.#progress, accepted: points - refused, refused };
  }

  /** Refused points on disk. Those that a running retry was refused again are in its file, too, and count once. */
  get count(): number {
    const { running = false, refused = 0 } = this.progress ?? {};
    return this.#rejects.count - (running ? refused : 0);
  }

  /** Resolves once the points wait for the next requests. A retry that runs goes on. Rejects as `node:fs` does. */
  async start(): Promise<RetryProgress> {
    if (this.#ended) throw new Error(stops);
    if (this.#progress?.running) return this.#progress;
    this.#progress = { running: true, points: 0, accepted: 0, refused: 0, unsendable: 0, held: 0 };
    try {
      return await this.#rejects.alone(() => this.#begin());
    } catch (error) {
      this.#progress = undefined;
      throw error;
    }
  }

  async #begin(): Promise<RetryProgress> {
    if (this.#ended) throw new Error(stops);
    // A retry that could not put its points back has left them in its file.
    await this.#files.recover();
    const { points, unsendable } = await sendableOf(this.#files.lines());
    this.#progress = {
      running: points.length > 0,
      points: points.length,
      accepted: 0,
      refused: 0,
      unsendable,
      held: 0,
    };
    if (points.length === 0) return this.#progress;
    await this.#files.takeOut();
    // The ids of a buffer are positive.
    const reader = new RejectReader(points, -1);
    this.#reader = reader;
    void reader.all.then(() => this.#finish());
    this.#inputs.hurry(points.map(({ input }) => input));
    const woken = this.#woken;
    this.#woken = new AbortController();
    woken.abort(new Error("refused points are sent again"));
    return this.#progress;
  }

  /** A reader of both. Only one is opened. */
  reader(buffer: BufferReader): BufferReader {
    const isOurs = (id: BlockId) => id < 0;
    return {
      take: (lane, options, signal) => this.#take(buffer, lane, options, signal),
      settle: async (done: readonly Settlement[]) => {
        const [ours, theirs] = split(done, ({ block }) => isOurs(block));
        if (ours.length > 0) await this.#reader?.settle(ours);
        if (theirs.length > 0) await buffer.settle(theirs);
      },
      release: (blocks) => {
        const [ours, theirs] = split(blocks, isOurs);
        this.#reader?.release(ours);
        if (theirs.length > 0) buffer.release(theirs);
      },
      [Symbol.asyncDispose]: () => buffer[Symbol.asyncDispose](),
    };
  }

  async #take(buffer: BufferReader, lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined> {
    // Taken first, so that points that come from here on end the wait.
    const woken = this.#woken.signal;
    const isDue = lane === "backlog" || options.wait;
    const block = isDue ? await this.#reader?.take("backlog", { ...options, wait: false }, signal) : undefined;
    if (block) return block;
    // Their inputs may be refused for days.
    if (this.#reader?.hasOnly(options.except)) void this.#finish();
    if (!options.wait) return await buffer.take(lane, options, signal);
    try {
      return await buffer.take(lane, options, AbortSignal.any([signal, woken]));
    } catch (error) {
      if (signal.aborted || !woken.aborted) throw error;
      // The caller looks again which inputs are due.
      return undefined;
    }
  }

  /** Puts undecided points back, before the uploader is disposed. The points stay in the retry file if that fails. */
  async end(): Promise<void> {
    this.#ended = true;
    // Waits for a retry that begins or ends, since the next uploader writes to the same files.
    await this.#rejects.alone(async () => {});
    await this.#finish();
  }

  async #finish(): Promise<void> {
    const reader = this.#reader;
    if (!reader) return;
    const progress = this.progress;
    if (!progress) return;
    this.#progress = progress;
    this.#reader = undefined;
    const unsettled = [...reader.unsettled()];
    const reasons = new Map(unsettled.map(({ input }) => [input, this.#inputs.reasonOf(input)]));
    const held = unsettled.filter(({ input }) => reasons.get(input) !== undefined);
    try {
      await this.#rejects.alone(async () => {
        const rest = restOf(reader, progress.unsendable, this.#files.newLines(), (input) => reasons.get(input));
        await this.#files.putBack(await rest);
      });
    } catch (error) {
      this.#log.warn({ reason: reasonOf(error) }, "refused points stay in the file of the retry");
    }
    const [first] = held;
    this.#progress = {
      ...progress,
      running: false,
      held: held.length,
      ...(first && { heldReason: reasons.get(first.input) }),
    };
  }
}

function split<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}
