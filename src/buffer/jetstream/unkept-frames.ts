// Accounts for frames that left the kept tail before they were settled. If the servers drop them now, as after `maxAge`,
// they cannot be published again: their points are counted as lost, by the agent that recorded them.
//
//   published ─▶ kept tail, 10 min ─▶ run of frames ─▶ settled, or no longer in the stream: lost
//
// A run is judged as a whole. If part of it was settled, the lost points are estimated by the number of frames.
import { z } from "zod";
import type { Loss } from "../../core/buffer.ts";
import { epochMicros } from "../../core/point.ts";
import { readStateFile, writeStateFile } from "../../lib/files/state-file.ts";
import type { SettledFrames } from "./settled-frames.ts";
import { epochKey, type StreamFrame } from "./stream-frame.ts";

const runFrames = 256;
const keptIntervals = 32;

const run = z.object({
  node: z.string(),
  epoch: z.string(),
  /** Frame numbers, without `end`. */
  first: z.int(),
  end: z.int(),
  points: z.int(),
  /** Creation time of the stream, and the last sequence in it. */
  created: z.string(),
  last: z.int(),
  from: z.number(),
  to: z.number(),
});
const interval = z.object({ number: z.int(), points: z.int(), from: z.number(), to: z.number() });
const content = z.object({ runs: z.array(run), lostPoints: z.int(), intervals: z.array(interval) });

export interface UnkeptFrame {
  readonly frame: StreamFrame;
  readonly sequence: number;
  readonly created: string;
}

export class UnkeptFrames {
  readonly #path: string;
  #runs: z.output<typeof run>[] = [];
  #lostPoints = 0;
  #intervals: z.output<typeof interval>[] = [];

  private constructor(path: string) {
    this.#path = path;
  }

  /** Continues the file at `path`. An unreadable one counts as empty. Never rejects. */
  static async open(path: string): Promise<UnkeptFrames> {
    const frames = new UnkeptFrames(path);
    const stored = await readStateFile(path, content);
    if (stored) ({ runs: frames.#runs, lostPoints: frames.#lostPoints, intervals: frames.#intervals } = stored);
    return frames;
  }

  /** Undefined: nothing was lost yet. */
  get loss(): Loss | undefined {
    if (this.#lostPoints === 0) return undefined;
    const intervals = this.#intervals.map(({ number, points, from, to }) => ({
      number,
      points,
      from: epochMicros(from),
      to: epochMicros(to),
    }));
    const { from } = intervals[0] ?? {};
    const { to } = intervals.at(-1) ?? {};
    return { reason: "cluster", points: this.#lostPoints, from, to, intervals };
  }

  /** Resolves once stored. Rejects as the disk does. */
  async add(unkept: readonly UnkeptFrame[]): Promise<void> {
    if (unkept.length === 0) return;
    for (const { frame, sequence, created } of unkept) {
      const { node, epoch, number, points, times } = frame;
      const from = times.reduce((least, time) => Math.min(least, time), Number.POSITIVE_INFINITY);
      const to = times.reduce((most, time) => Math.max(most, time), Number.NEGATIVE_INFINITY);
      const known = this.#runs.findLast((one) => epochKey(one) === epochKey(frame));
      // After a crash, frames of the tail are added again.
      if (this.#runs.some((one) => epochKey(one) === epochKey(frame) && one.first <= number && number < one.end))
        continue;
      if (known?.end === number && known.created === created && number - known.first < runFrames) {
        known.end++;
        known.points += points;
        known.last = Math.max(known.last, sequence);
        known.from = Math.min(known.from, from);
        known.to = Math.max(known.to, to);
      } else
        this.#runs.push({ node, epoch, first: number, end: number + 1, points, created, last: sequence, from, to });
    }
    await this.#save();
  }

  /**
   * Removes runs that are settled or lost. `settled` must have been read after the state of the stream. Resolves with the
   * number of points lost, once stored. Rejects as the disk does.
   */
  async judge(settled: SettledFrames, created: string, firstSequence: number): Promise<number> {
    let lost = 0;
    const waiting = this.#runs.filter((one) => {
      const frames = one.end - one.first;
      const left = frames - settled.countIn(one, one.first, one.end);
      if (left > 0 && one.created === created && one.last >= firstSequence) return true;
      const points = Math.round((one.points * left) / frames);
      if (points > 0) {
        lost += points;
        const number = (this.#intervals.at(-1)?.number ?? 0) + 1;
        this.#intervals = [...this.#intervals, { number, points, from: one.from, to: one.to }].slice(-keptIntervals);
      }
      return false;
    });
    this.#lostPoints += lost;
    if (waiting.length === this.#runs.length) return 0;
    this.#runs = waiting;
    await this.#save();
    return lost;
  }

  async #save(): Promise<void> {
    await writeStateFile(this.#path, { runs: this.#runs, lostPoints: this.#lostPoints, intervals: this.#intervals });
  }
}
