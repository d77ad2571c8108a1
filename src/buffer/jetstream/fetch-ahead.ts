// Requests several messages of the stream at once: one by one, a backlog would drain at the round trips to the servers.
import type { PointStream, StreamMessage } from "../../cluster/connection/jetstream.ts";

/** 8 MiB at most. */
const fetchedAhead = 16;

export class FetchAhead {
  readonly #stream: Pick<PointStream, "next">;
  readonly #messages = new Map<number, Promise<StreamMessage | undefined>>();

  constructor(stream: Pick<PointStream, "next">) {
    this.#stream = stream;
  }

  /**
   * Resolves with the message at `at`, and requests those that are read next. `next`: the position after another one;
   * `isKnown`: it need not be read. Rejects as the stream does.
   */
  async fetch(
    at: number,
    next: (after: number) => number | undefined,
    isKnown: (position: number) => boolean,
  ): Promise<StreamMessage | undefined> {
    for (const position of this.#messages.keys()) if (position < at) this.#messages.delete(position);
    let position: number | undefined = at;
    for (let i = 0; i < fetchedAhead && position !== undefined; i++) {
      if ((position === at || !isKnown(position)) && !this.#messages.has(position)) {
        const message = this.#stream.next(position);
        message.catch(() => {}); // it is awaited when its position is read, or not at all
        this.#messages.set(position, message);
      }
      position = next(position);
    }
    const message = this.#messages.get(at);
    this.#messages.delete(at);
    return await message;
  }

  clear(): void {
    this.#messages.clear();
  }
}
