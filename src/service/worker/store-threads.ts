// The threads of the store: one writer and up to two readers. A query waits neither for an insert nor, while a thread
// is free, for another query. The second reader starts when the first is busy, since each takes 30 MB. An in-memory
// store uses one thread for everything.
//
// SQLite can restart its write-ahead log only when no query reads from it. Overlapping queries prevent that, so when
// the log is too large, new queries wait:
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
/** Half a minute of continuous inserts. With a smaller log, queries would wait more often. */
const maxLogBytes = 256 * 2 ** 20;

export class StoreThreads implements AsyncDisposable {
  readonly #data: string;
  readonly #threads: AsyncDisposableStack;
  readonly #writer: WorkerThread;
  readonly #readers: WorkerThread[] = [];
  /** One query for each thread; waiting queries go to the first free one. */
  readonly #queries = new PQueue({ concurrency: maxReaders });
  readonly #failed = Promise.withResolvers<Error>();
  /** Resolves when a thread has ended unexpectedly, such as by lack of memory. Calls then fail. */
  readonly failed = this.#failed.promise;
  readonly #maxLogBytes: number;
  /** Log size at which queries wait for a checkpoint. */
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
   * Runs writes one at a time in order, except that other writes overtake large inserts. A query sees every write
   * answered before. Transfers `input.body`. Rejects when a thread has ended. If `abandoned` aborts, a query stops and
   * a write continues.
   */
  async call(input: RpcInput, abandoned: AbortSignal): Promise<StoreAnswer> {
    const method = methodOf(input.method, input.namespace);
    if (this.#readers.length > 0 && method && onlyReads(method))
      return this.#queries.add(() => {
        abandoned.throwIfAborted();
        return this.#freeReader().call(input, abandoned);
      });
    const answer = await this.#writer.call(input);
    // Before responding, since the client may query at once.
    if (answer.changes && isAny(answer.changes)) for (const reader of this.#readers) reader.refresh(answer.changes);
    void this.#boundLog();
    return answer;
  }

  /** Deletes points older than `before`, microseconds since the epoch. Rejects as `call` does. */
  expire(before: number): Promise<StoreAnswer> {
    return this.#writer.maintain({ expireBefore: before });
  }

  /** Waits for earlier calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#queries.onIdle();
    await this.#threads.disposeAsync();
  }

  /** Running queries end first. That takes 15 s at most, since their clients time out then. */
  async #boundLog(): Promise<void> {
    try {
      if (this.#readers.length === 0 || (await this.#logBytes()) < this.#logLimit || this.#queries.isPaused) return;
      this.#queries.pause();
      await this.#queries.onPendingZero();
      await this.#writer.maintain("truncate log");
      // After a failure, the next checkpoint follows when the log has grown by the limit again.
      this.#logLimit = this.#maxLogBytes + (await this.#logBytes());
      this.#queries.start();
    } catch {
      // The thread has ended: `failed` reports it, and queries reject.
      this.#queries.start();
    }
  }

  async #logBytes(): Promise<number> {
    return (await stat(join(this.#data, logFile))).size;
  }

  #freeReader(): WorkerThread {
    return this.#readers.find(({ calls }) => calls === 0) ?? this.#addReader();
  }

  /** A new reader reads the committed state when it opens, and then receives the changes of each later write. */
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
