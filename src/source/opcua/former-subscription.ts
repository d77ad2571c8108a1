// Keeps account of a subscription of an earlier session while it hands over what it has kept.
import type { Acknowledgement } from "./publisher.ts";

/** Over once it has no more and all that it gave is on disk. */
export class FormerSubscription {
  readonly id: number;
  readonly #open = new Set<number>();
  #ended = false;

  constructor(id: number) {
    this.id = id;
  }

  get over(): boolean {
    return this.#ended && this.#open.size === 0;
  }

  delivered({ subscription, sequenceNumber }: Acknowledgement): void {
    if (subscription === this.id) this.#open.add(sequenceNumber);
  }

  acknowledged({ subscription, sequenceNumber }: Acknowledgement): void {
    if (subscription === this.id) this.#open.delete(sequenceNumber);
  }

  end(): void {
    this.#ended = true;
  }
}
