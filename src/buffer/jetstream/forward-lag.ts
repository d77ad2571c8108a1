// How far forwarding is behind the local buffer, from the numbers of points. Points always arrive, so the buffer need
// never be empty: what counts is when as many points had arrived as have left it.
//
//   appended   100 at 0 s ─── 200 at 1 s ─── 300 at 2 s (now)
//   left       150                            the points that wait are the last 150: they arrived after 0 s
import type { BufferStats } from "../../core/buffer.ts";

type Counts = Pick<BufferStats, "appendedPoints" | "unsettledPoints">;

/** Minimum interval between two marks, and their maximum number: a longer lag is measured more coarsely. */
const markEveryMs = 100;
const mostMarks = 1_000;

export class ForwardLag {
  #marks: { readonly time: number; readonly appended: number }[] = [];

  /** Milliseconds at the monotonic time `now`; 0: no points wait. To be called regularly while points arrive. */
  measure(now: number, { appendedPoints, unsettledPoints }: Counts): number {
    if (now - (this.#marks.at(-1)?.time ?? Number.NEGATIVE_INFINITY) >= markEveryMs)
      this.#marks.push({ time: now, appended: appendedPoints });
    const left = appendedPoints - unsettledPoints;
    const behind = this.#marks.findIndex(({ appended }) => appended > left);
    this.#marks.splice(0, behind < 0 ? this.#marks.length - 1 : behind);
    if (this.#marks.length > mostMarks) this.#marks = this.#marks.filter((_, i) => i % 2 === 0);
    return behind < 0 ? 0 : now - this.#marks[0]!.time;
  }
}
