// Prevents a faulty service or configuration from turning a backlog into rejects.

/** More than the refusals in a row needed to find one bad point in a frame of any size. */
const mostInARow = 25;
const sampleSize = 100_000;
const mostShare = 0.01;

/** Opens if the service refuses every request, or more than 1 % of the last 100,000 points. */
export class Breaker {
  #inARow = 0;
  #sent = 0;
  #refused = 0;

  get open(): boolean {
    return this.#inARow >= mostInARow || this.#refused > sampleSize * mostShare;
  }

  get cause(): string {
    return this.#inARow >= mostInARow
      ? `${this.#inARow} requests in a row are refused`
      : `${mostShare * 100} % of the last points or more are refused`;
  }

  accepted(points: number): void {
    this.#inARow = 0;
    this.#sent += points;
    // Removes half a sample at a time, so the count covers between half and a whole sample.
    while (this.#sent > sampleSize) {
      this.#sent -= sampleSize / 2;
      this.#refused >>= 1;
    }
  }

  refused(): void {
    this.#inARow++;
  }

  rejected(points: number): void {
    this.#refused += points;
    this.#sent += points;
  }
}
