// A leased block. Marks its points in the segment as leased, then as settled or free.
import type { Segment } from "../segments/segment.ts";
import type { SeriesOut } from "./series-out.ts";

export class Lease {
  readonly segment: Segment;
  readonly series: SeriesOut;
  readonly late: ReadonlySet<number>;
  readonly #points: number;
  /** `settled.whole` covers the records, with gaps for unsettled series. */
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
      // Most series are settled: whole ranges with few gaps need less memory than many single series.
      this.#asWhole = true;
      segment.settledBySeries -= this.#points + series.leftOutPoints;
      segment.settled.addWhole(series.records, series.leftOut);
      for (const { place, ranges } of series.parts()) segment.settled.removeSeries(place, ranges);
    }
    return points;
  }

  release(): void {
    const { series } = this;
    const { taken, settled } = this.segment;
    if (series.bySeries || this.#asWhole) {
      for (const { place, ranges } of series.parts()) taken.removeSeries(place, ranges);
      return;
    }
    taken.removeWhole(series.records, series.leftOut);
    // `removeWhole` also removed the settled series, which stay taken.
    for (const [place, ranges] of settled.series) taken.addSeries(place, ranges);
  }
}
