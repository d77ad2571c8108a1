// Stops a service or a configuration that is wrong altogether from turning a backlog into rejects.

/** More refusals in a row than it takes to find one bad point in a frame of any size. */
const mostInARow = 25;
const sampleSize = 100_000;
const mostShare = 0.01;

/** Open when the service refuses whatever it is sent, or more than 1 % of the last 100,000 points. */
export class Breaker {
  #inARow = 0;
  #sent = 0;
  #refused = 0;

  get open(): boolean {
    return this.#inARow >= mostInARow || this.#refused > sampleSize * mostShare;
  }

  /** What opened it, for people. */
  get cause(): string {
    return this.#inARow >= mostInARow
      ? `${this.#inARow} requests in a row are refused`
      : `${mostShare * 100} % of the last points or more are refused`;
  }

  accepted(points: number): void {
    this.#inARow = 0;
    this.#sent += points;
    // Half a sample at a time, so that what is counted spans between half and the whole of it.
    while (this.#sent > sampleSize) {
      this.#sent -= sampleSize / 2;
      this.#refused >>= 1;
    }
  }

  /** A request was refused. */
  refused(): void {
    this.#inARow++;
  }

  /** Points were refused for good. */
  rejected(points: number): void {
    this.#refused += points;
    this.#sent += points;
  }
}
