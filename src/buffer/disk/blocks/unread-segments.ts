// Segments that the disk did not give when they were last read, and which late records wait for them: late points may
// replace points in such a segment, so they come after it. All other points go on.
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";

export class UnreadSegments {
  readonly #unread = new Set<Segment>();
  /** Times of late records that wait: late points behind them wait as well. */
  readonly #withheld = new Map<Segment, { readonly earliest: number; readonly latest: number }>();

  get isEmpty(): boolean {
    return this.#unread.size === 0;
  }

  add(segment: Segment): void {
    this.#unread.add(segment);
  }

  delete(segment: Segment): void {
    this.#unread.delete(segment);
  }

  /** The segment is gone. */
  forget(segment: Segment): void {
    this.#unread.delete(segment);
    this.#withheld.delete(segment);
  }

  /** Nothing of the segment waits, as far as is known. */
  restart(segment: Segment): void {
    this.#withheld.delete(segment);
  }

  /** Whether a late record has to wait. `mayHold`: whether points that are asked for may be in a segment. */
  withholds(segment: Segment, index: SegmentIndex, record: number, mayHold: (segment: Segment) => boolean): boolean {
    const [from, to] = [index.earliest[record]!, index.latest[record]!];
    const touches = ({ earliest = -Infinity, latest = Infinity }: Pick<Segment, "earliest" | "latest">) =>
      from <= latest && to >= earliest;
    if (this.isEmpty) this.#withheld.clear();
    const waits =
      [...this.#unread].some((each) => each.first < segment.first && touches(each) && mayHold(each)) ||
      [...this.#withheld].some(([{ first }, times]) => first <= segment.first && touches(times));
    if (!waits) return false;
    const before = this.#withheld.get(segment) ?? { earliest: from, latest: to };
    const [earliest, latest] = [Math.min(before.earliest, from), Math.max(before.latest, to)];
    this.#withheld.set(segment, { earliest, latest });
    return true;
  }
}
