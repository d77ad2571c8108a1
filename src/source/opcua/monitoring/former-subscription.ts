// Keeps account of a subscription of an earlier session while it hands over what it has kept.
import type { Acknowledgement } from "./notification.ts";

export class FormerSubscription {
  readonly id: number;
  readonly #over = Promise.withResolvers<void>();
  readonly #open = new Set<number>();
  #ended = false;

  constructor(id: number) {
    this.id = id;
  }

  /** Resolves once it has no more and all that it gave is on disk. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  delivered({ subscription, sequenceNumber }: Acknowledgement): void {
    if (subscription === this.id) this.#open.add(sequenceNumber);
  }

  acknowledged({ subscription, sequenceNumber }: Acknowledgement): void {
    if (subscription === this.id) this.#open.delete(sequenceNumber);
    this.#settle();
  }

  end(): void {
    this.#ended = true;
    this.#settle();
  }

  #settle(): void {
    if (this.#ended && this.#open.size === 0) this.#over.resolve();
  }
}
