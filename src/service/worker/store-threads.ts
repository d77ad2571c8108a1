// The threads of the store: one that writes, and up to two that read, so that a query waits neither for an insert nor, as
// long as one thread is free, for another query. The second starts when the first is busy, as each takes 30 MB. What is
// kept in memory alone has one thread for everything.
//
// SQLite starts its write-ahead log again from the beginning only at a moment when no query reads from it. Queries that
// overlap leave no such moment, so new ones wait for one when the log has grown too large:
//
//   writes      ── insert ── insert ── insert ── checkpoint ── insert ──
//   thread 1    ── query ──────┤                            ├── query ──
//   thread 2    ────── query ────────────────┤              ├── query ──
//                              log > limit: pause           go on, log empty
import { stat } from "node:fs/promises";
import { join } from "node:path";
import PQueue from "p-queue";
import { methodOf, onlyReads, type RpcInput } from "../method/dispatch.ts";
import type { ResourceChanges } from "../store/resource-store.ts";
import { logFile } from "../store/store.ts";
import { type StoreAnswer, WorkerThread } from "./worker-thread.ts";

const maxReaders = 2;
/** Half a minute of inserts without a pause. A smaller log would make queries wait more often. */
const maxLogBytes = 256 * 2 ** 20;

export class StoreThreads implements AsyncDisposable {
  readonly #data: string;
  readonly #threads: AsyncDisposableStack;
  readonly #writer: WorkerThread;
  readonly #readers: WorkerThread[] = [];
  /** One query for each thread: what waits goes to the thread that is free first. */
  readonly #queries = new PQueue({ concurrency: maxReaders });
  readonly #failed = Promise.withResolvers<Error>();
  /** Resolves when a thread has ended unasked, for want of memory perhaps: calls can no longer be answered. */
  readonly failed = this.#failed.promise;
  readonly #maxLogBytes: number;
  /** Size of the log at which queries wait for a checkpoint. */
  #logLimit: number;

  private constructor(data: string, writer: WorkerThread, threads: AsyncDisposableStack, maxLog: number) {
    this.#data = data;
    this.#maxLogBytes = this.#logLimit = maxLog;
    this.#writer = writer;
    this.#threads = threads;
    void writer.failed.then(this.#failed.resolve);
    if (data !== ":memory:") this.#addReader();
  }

  /** Resolves when the store is open. Rejects with `DATA_DIR_UNWRITABLE`, `DATA_DIR_IN_USE` or `BUFFER_NEWER`. */
  static async open(data: string, maxLog = maxLogBytes): Promise<StoreThreads> {
    await using threads = new AsyncDisposableStack();
    const writer = threads.use(new WorkerThread({ data, reads: false }));
    await writer.opened;
    return new StoreThreads(data, writer, threads.move(), maxLog);
  }

  /**
   * Answers writes in the order of the calls, and a query from a state that holds every write answered before it.
   * `input.body` is handed over: it must not be used any more. Rejects when a thread has ended. A query whose `abandoned`
   * aborts is not begun, or stops; a write goes on.
   */
  async call(input: RpcInput, abandoned: AbortSignal): Promise<StoreAnswer> {
    const method = methodOf(input.method, input.namespace);
    if (this.#readers.length > 0 && method && onlyReads(method))
      return this.#queries.add(() => {
        abandoned.throwIfAborted();
        return this.#freeReader().call(input, abandoned);
      });
    const answer = await this.#writer.call(input);
    // Before the answer goes out: who has it may ask at once.
    if (answer.changes && isAny(answer.changes)) for (const reader of this.#readers) reader.refresh(answer.changes);
    void this.#boundLog();
    return answer;
  }

  /** Deletes points older than `before`, microseconds since the epoch. Rejects as `call` does. */
  expire(before: number): Promise<StoreAnswer> {
    return this.#writer.maintain({ expireBefore: before });
  }

  /** Waits for the calls before it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queries.onIdle();
    await this.#threads.disposeAsync();
  }

  /** Queries that run end first, which takes 15 s at most, as their clients wait no longer. */
  async #boundLog(): Promise<void> {
    try {
      if (this.#readers.length === 0 || (await this.#logBytes()) < this.#logLimit || this.#queries.isPaused) return;
      this.#queries.pause();
      await this.#queries.onPendingZero();
      await this.#writer.maintain("checkpoint");
      // Where it failed, the disk being full perhaps, the next one comes when there is as much again.
      this.#logLimit = this.#maxLogBytes + (await this.#logBytes());
      this.#queries.start();
    } catch {
      // The thread has ended, which `failed` reports, and queries reject.
      this.#queries.start();
    }
  }

  async #logBytes(): Promise<number> {
    return (await stat(join(this.#data, logFile))).size;
  }

  #freeReader(): WorkerThread {
    return this.#readers.find(({ calls }) => calls === 0) ?? this.#addReader();
  }

  /** It reads what is committed when it opens, and gets the changes of each write that is answered from now on. */
  #addReader(): WorkerThread {
    const reader = this.#threads.use(new WorkerThread({ data: this.#data, reads: true }));
    void reader.failed.then(this.#failed.resolve);
    this.#readers.push(reader);
    return reader;
  }
}

function isAny({ signals, items }: ResourceChanges): boolean {
  return signals.length > 0 || items.length > 0;
}
