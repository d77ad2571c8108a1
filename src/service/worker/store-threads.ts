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
import { logFile } from "../store/store.ts";
import { type StoreAnswer, startWorkerThread, type WorkerThread } from "./worker-thread.ts";

const maxReaders = 2;
/** Half a minute of continuous inserts. With a smaller log, queries would wait more often. */
const maxLogBytes = 256 * 2 ** 20;

export type StoreThreads = Awaited<ReturnType<typeof openStoreThreads>>;

/** Resolves when the store is open. Rejects as `ServiceStore.open` throws. */
export async function openStoreThreads(data: string, maxLog = maxLogBytes) {
  await using threads = new AsyncDisposableStack();
  const writer = threads.use(startWorkerThread({ data, reads: false }));
  await writer.opened;
  const readers: WorkerThread[] = [];
  /** One query for each thread; waiting queries go to the first free one. */
  const queries = new PQueue({ concurrency: maxReaders });
  const failure = Promise.withResolvers<Error>();
  /** Log size at which queries wait for a checkpoint. */
  let logLimit = maxLog;
  void writer.failed.then(failure.resolve);
  const owned = threads.move();
  if (data !== ":memory:") addReader();

  /** Running queries end first. That takes 15 s at most, since their clients time out then. */
  async function boundLog(): Promise<void> {
    try {
      if (readers.length === 0 || (await logBytes()) < logLimit || queries.isPaused) return;
      queries.pause();
      await queries.onPendingZero();
      await writer.maintain("truncate log");
      // After a failure, the next checkpoint follows when the log has grown by the limit again.
      logLimit = maxLog + (await logBytes());
      queries.start();
    } catch {
      // The thread has ended: `failed` reports it, and queries reject.
      queries.start();
    }
  }

  async function logBytes(): Promise<number> {
    return (await stat(join(data, logFile))).size;
  }

  function freeReader(): WorkerThread {
    return readers.find(({ calls }) => calls === 0) ?? addReader();
  }

  /** A new reader reads the committed state when it opens, and then receives the changes of each later write. */
  function addReader(): WorkerThread {
    const reader = owned.use(startWorkerThread({ data, reads: true }));
    void reader.failed.then(failure.resolve);
    readers.push(reader);
    return reader;
  }

  return {
    /** Resolves when a thread has ended unexpectedly, such as by lack of memory. Calls then fail. */
    failed: failure.promise,
    /**
     * Runs writes one at a time in order, except that other writes overtake large inserts. A query sees every write
     * answered before. Transfers `input.body`. Rejects when a thread has ended. If `abandoned` aborts, a query stops and
     * a write continues.
     */
    async call(input: RpcInput, abandoned: AbortSignal): Promise<StoreAnswer> {
      const method = methodOf(input.method, input.namespace);
      if (readers.length > 0 && method && onlyReads(method))
        return queries.add(() => {
          abandoned.throwIfAborted();
          return freeReader().call(input, abandoned);
        });
      const answer = await writer.call(input);
      // Before responding, since the client may query at once.
      const { changes } = answer;
      if (changes?.signals.length || changes?.items.length) for (const reader of readers) reader.refresh(changes);
      void boundLog();
      return answer;
    },
    /** Deletes points older than `before`, microseconds since the epoch. Rejects as `call` does. */
    expire: (before: number): Promise<StoreAnswer> => writer.maintain({ expireBefore: before }),
    /** Waits for earlier calls. */
    async [Symbol.asyncDispose](): Promise<void> {
      await queries.onIdle();
      await owned.disposeAsync();
    },
  };
}
