// Segments whose last read failed. Late records of later segments wait for them, since they may replace points in them.
// All other points are leased as usual.
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";

export class UnreadSegments {
  readonly #unread = new Set<Segment>();
  /** Time ranges of waiting late records. Later late records that overlap them wait too. */
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

  forget(segment: Segment): void {
    this.#unread.delete(segment);
    this.#withheld.delete(segment);
  }

  /** Resets the waiting records of the segment before it is scanned again. */
  restart(segment: Segment): void {
    this.#withheld.delete(segment);
  }

  /** Whether a late record must wait. `mayHold`: whether a segment may hold requested points. */
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
