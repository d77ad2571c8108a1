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

export type RejectRetry = ReturnType<typeof rejectRetry>;

export function rejectRetry(files: RejectFiles, rejects: Rejects, inputs: RefusedInputs, log: Logger) {
  let woken = new AbortController();
  let hasEnded = false;
  let running: RejectReader | undefined;
  let latest: RetryProgress | undefined;

  function progress(): RetryProgress | undefined {
    if (!running || !latest) return latest;
    const { points, refused } = running.settled;
    return { ...latest, accepted: points - refused, refused };
  }

  async function begin(): Promise<RetryProgress> {
    if (hasEnded) throw new Error(stops);
    // A retry that could not put its points back has left them in its file.
    await files.recover();
    const { points, unsendable } = await sendableOf(files.lines());
    const left = points.length;
    latest = { running: left > 0, points: left, accepted: 0, refused: 0, unsendable, held: 0 };
    if (points.length === 0) return latest;
    await files.takeOut();
    const reader = new RejectReader(points);
    running = reader;
    void reader.all.then(finish);
    inputs.hurry(points.map(({ input }) => input));
    const waiting = woken;
    woken = new AbortController();
    waiting.abort(new Error("refused points are sent again"));
    return latest;
  }

  async function take(
    buffer: BufferReader,
    lane: Lane,
    options: TakeOptions,
    signal: AbortSignal,
  ): Promise<Block | undefined> {
    // Taken first, so that points that come from here on end the wait.
    const { signal: wakes } = woken;
    const isDue = lane === "backlog" || options.wait;
    const block = isDue ? await running?.take("backlog", { ...options, wait: false }, signal) : undefined;
    if (block) return block;
    // Their inputs may be refused for days.
    if (running?.hasOnly(options.except)) void finish();
    if (!options.wait) return await buffer.take(lane, options, signal);
    try {
      return await buffer.take(lane, options, AbortSignal.any([signal, wakes]));
    } catch (error) {
      if (signal.aborted || !wakes.aborted) throw error;
      // The caller looks again which inputs are due.
      return undefined;
    }
  }

  async function finish(): Promise<void> {
    const reader = running;
    if (!reader) return;
    const now = progress();
    if (!now) return;
    latest = now;
    running = undefined;
    const unsettled = [...reader.unsettled()];
    const reasons = new Map(unsettled.map(({ input }) => [input, inputs.reasonOf(input)]));
    const held = unsettled.filter(({ input }) => reasons.get(input) !== undefined);
    try {
      await rejects.alone(async () => {
        const rest = restOf(reader, now.unsendable, files.newLines(), (input) => reasons.get(input));
        await files.putBack(await rest);
      });
    } catch (error) {
      log.warn({ reason: reasonOf(error) }, "refused points stay in the file of the retry");
    }
    const [first] = held;
    const why = first && { heldReason: reasons.get(first.input) };
    latest = { ...now, running: false, held: held.length, ...why };
  }

  return {
    /** The last retry since the uploader was opened. Undefined: none. */
    get progress(): RetryProgress | undefined {
      return progress();
    },
    /** Refused points on disk. Those that a running retry was refused again are in its file, too, and count once. */
    get count(): number {
      const now = progress();
      return rejects.count - (now?.running ? now.refused : 0);
    },
    /** Resolves once the points wait for the next requests. A retry that runs goes on. Rejects as `node:fs` does. */
    async start(): Promise<RetryProgress> {
      if (hasEnded) throw new Error(stops);
      if (latest?.running) return latest;
      latest = { running: true, points: 0, accepted: 0, refused: 0, unsendable: 0, held: 0 };
      try {
        return await rejects.alone(begin);
      } catch (error) {
        latest = undefined;
        throw error;
      }
    },
    /** A reader of both. Only one is opened. */
    reader(buffer: BufferReader): BufferReader {
      const isOurs = (id: BlockId) => id < 0;
      return {
        take: (lane, options, signal) => take(buffer, lane, options, signal),
        settle: async (done: readonly Settlement[]) => {
          const [ours, theirs] = split(done, ({ block }) => isOurs(block));
          if (ours.length > 0) await running?.settle(ours);
          if (theirs.length > 0) await buffer.settle(theirs);
        },
        release: (blocks) => {
          const [ours, theirs] = split(blocks, isOurs);
          running?.release(ours);
          if (theirs.length > 0) buffer.release(theirs);
        },
        [Symbol.asyncDispose]: () => buffer[Symbol.asyncDispose](),
      };
    },
    /** Puts undecided points back, before the uploader is disposed. The points stay in the retry file if that fails. */
    async end(): Promise<void> {
      hasEnded = true;
      // Waits for a retry that begins or ends, since the next uploader writes to the same files.
      await rejects.alone(async () => {});
      await finish();
    },
  };
}

function split<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}
