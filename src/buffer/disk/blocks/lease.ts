// A leased block: marks its points in the segment as leased, and later as settled, released or lost.
import type { Segment } from "../segments/segment.ts";
import type { SeriesOut } from "./series-out.ts";

export class Lease {
  readonly segment: Segment;
  readonly series: SeriesOut;
  /** Numbers of the inputs with late points. */
  readonly late: ReadonlySet<number>;
  /** Points when it was leased. */
  readonly #points: number;
  /** `settled.whole` has its records, with gaps for what is not settled. */
  #asWhole = false;

  constructor(segment: Segment, series: SeriesOut, late: ReadonlySet<number>) {
    this.segment = segment;
    this.series = series;
    this.late = late;
    this.#points = series.points;
    if (series.bySeries) for (const { place, ranges } of series.parts()) segment.taken.addSeries(place, ranges);
    else segment.taken.addWhole(series.records, series.leftOut);
  }

  /** Settles the points of these inputs. Returns their number. */
  settle(inputs: Uint32Array): number {
    const { segment, series } = this;
    const before = series.points;
    const places = series.settle(inputs);
    const points = before - series.points;
    segment.settledBySeries += points;
    if (series.bySeries || this.#asWhole || series.count > series.size / 2)
      for (const at of places) {
        const { place, ranges } = series.part(at);
        segment.settled.addSeries(place, ranges);
      }
    else {
      // Most of it is settled: whole stretches with a few gaps say so in less room than many series do.
      this.#asWhole = true;
      segment.settledBySeries -= this.#points + series.leftOutPoints;
      segment.settled.addWhole(series.records, series.leftOut);
      for (const { place, ranges } of series.parts()) segment.settled.removeSeries(place, ranges);
    }
    return points;
  }

  /** What is not settled is free again. */
  release(): void {
    const { series } = this;
    const { taken, settled } = this.segment;
    if (series.bySeries || this.#asWhole) {
      for (const { place, ranges } of series.parts()) taken.removeSeries(place, ranges);
      return;
    }
    taken.removeWhole(series.records, series.leftOut);
    // What was settled of it already is settled.
    for (const [place, ranges] of settled.series) taken.addSeries(place, ranges);
  }
}
