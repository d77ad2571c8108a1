// The threads of the store: one that writes, and two that read, so that a query waits neither for an insert nor, as long
// as one thread is free, for another query. What is kept in memory alone has one thread for everything.
import { methodOf, onlyReads, type RpcInput } from "../method/dispatch.ts";
import type { ResourceChanges } from "../store/resource-store.ts";
import { type StoreAnswer, WorkerThread } from "./worker-thread.ts";

const readerCount = 2;

export class StoreThreads implements AsyncDisposable {
  readonly #writer: WorkerThread;
  readonly #readers: readonly WorkerThread[];
  readonly #threads: AsyncDisposableStack;
  /** Resolves when a thread has ended unasked, for want of memory perhaps: calls can no longer be answered. */
  readonly failed: Promise<Error>;

  private constructor(writer: WorkerThread, readers: readonly WorkerThread[], threads: AsyncDisposableStack) {
    this.#writer = writer;
    this.#readers = readers;
    this.#threads = threads;
    this.failed = Promise.race([writer, ...readers].map(({ failed }) => failed));
  }

  /** Resolves when the store is open. Rejects with `DATA_DIR_UNWRITABLE`, `DATA_DIR_IN_USE` or `BUFFER_NEWER`. */
  static async open(data: string): Promise<StoreThreads> {
    await using threads = new AsyncDisposableStack();
    const writer = threads.use(new WorkerThread({ data, reads: false }));
    await writer.opened;
    const count = data === ":memory:" ? 0 : readerCount;
    const readers = Array.from({ length: count }, () => threads.use(new WorkerThread({ data, reads: true })));
    return new StoreThreads(writer, readers, threads.move());
  }

  /**
   * Answers writes in the order of the calls, and a query from a state that holds every write answered before it.
   * `input.body` is handed over: it must not be used any more. Rejects when a thread has ended.
   */
  async call(input: RpcInput): Promise<StoreAnswer> {
    const method = methodOf(input.method, input.namespace);
    if (method && onlyReads(method)) return this.#leastBusy().call(input);
    const answer = await this.#writer.call(input);
    // Before the answer goes out: who has it may ask at once.
    if (answer.changes && isAny(answer.changes)) for (const reader of this.#readers) reader.refresh(answer.changes);
    return answer;
  }

  /** Deletes points older than `before`, microseconds since the epoch. Rejects as `call` does. */
  expire(before: number): Promise<StoreAnswer> {
    return this.#writer.expire(before);
  }

  /** Waits for the calls before it. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#threads.disposeAsync();
  }

  #leastBusy(): WorkerThread {
    let chosen = this.#readers[0] ?? this.#writer;
    for (const reader of this.#readers) if (reader.calls < chosen.calls) chosen = reader;
    return chosen;
  }
}

function isAny({ signals, items }: ResourceChanges): boolean {
  return signals.length > 0 || items.length > 0;
}
