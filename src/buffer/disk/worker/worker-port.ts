// Has the log thread open its folder, and talks to it.
import { type MessagePort, receiveMessageOnPort, type Worker } from "node:worker_threads";
import type { Loss } from "../../../core/buffer.ts";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";
import { type LogWorker, startLogWorker } from "./log-worker.ts";
import type { StoreOpened, StorePort, StoreReply, StoreRequest, StoreStart, ThreadStart } from "./protocol.ts";
import { putRequest, type SharedReply, takeReply } from "./shared-append.ts";
import { LookOut, type ThreadLink, threadLink } from "./thread-link.ts";

/**
 * Resolves when the thread has opened its folder, or failed to: see `opened.error`. Rejects with `signal.reason`. `thread` is
 * one that was started before, and nothing else's from now on.
 */
export async function openWorkerPort(
  start: StoreStart,
  signal: AbortSignal,
  thread: LogWorker = startLogWorker(),
): Promise<StorePort> {
  const { worker } = thread;
  const { link, port } = threadLink();
  const told: ThreadStart = { ...start, link };
  worker.postMessage(told, [link.port]);
  try {
    return new WorkerPort(worker, await orAbort(thread.opened, signal), { ...link, port });
  } catch (error) {
    port.close();
    await worker.terminate();
    throw error;
  }
}

interface Waiting {
  readonly reply: PromiseWithResolvers<StoreReply>;
  readonly sentAt: number;
  readonly isShared: boolean;
}

class WorkerPort implements StorePort {
  readonly opened: StoreOpened;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #link: ThreadLink;
  readonly #waiting: Waiting[] = [];
  /** An append is in the memory that both threads see. */
  #isShared = false;
  /** Losses told last. */
  #losses: readonly Loss[];
  /** Replies received, as they are counted in the link. */
  #received = 0;
  #repliedAt = Number.NEGATIVE_INFINITY;
  /** Milliseconds that the last reply took. */
  #took = Number.POSITIVE_INFINITY;
  readonly #lookOut = new LookOut();
  #isLookingOut = false;
  #failure: AgentError | undefined;

  constructor(worker: Worker, opened: StoreOpened, link: ThreadLink) {
    this.#worker = worker;
    this.#port = link.port;
    this.#link = link;
    this.opened = opened;
    this.#losses = [];
    this.#port.on("message", (reply: StoreReply | SharedReply) => this.#receive(reply));
    // The agent ends when its work does, not when its threads do.
    this.#port.unref();
    worker.unref();
    worker.on("error", (error) => this.#fail(`the log thread failed: ${error.message}`));
    worker.on("exit", () => this.#fail("the log thread has ended"));
  }

  get failure(): AgentError | undefined {
    return this.#failure;
  }

  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply> {
    if (this.#failure) return Promise.reject(this.#failure);
    const reply = Promise.withResolvers<StoreReply>();
    const sentAt = performance.now();
    // As long as an answer is owed, the process stays.
    if (this.#waiting.length === 0) this.#worker.ref();
    const shared = this.#isShared ? undefined : putRequest(this.#link.append, request);
    if (shared) this.#isShared = true;
    this.#port.postMessage(shared ?? request, shared ? [] : [...transfer]);
    this.#waiting.push({ reply, sentAt, isShared: shared !== undefined });
    Atomics.add(this.#link.requests, 0, 1);
    const waited = Math.max(this.#took, sentAt - this.#repliedAt);
    if (this.#link.brisk && !this.#isLookingOut && this.#lookOut.isWorth(waited)) {
      this.#lookOut.begin();
      this.#look(sentAt);
    }
    return reply.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#port.close();
    await this.#worker.terminate();
  }

  /** In every turn of the event loop, which does its other work all the same. */
  #look(since: number): void {
    this.#isLookingOut = true;
    setImmediate(() => {
      this.#isLookingOut = false;
      const isHere = Atomics.load(this.#link.replies, 0) !== this.#received;
      if (isHere) this.#receiveNext();
      else if (this.#waiting.length > 0 && this.#lookOut.goesOn(since)) this.#look(since);
    });
  }

  #receiveNext(): boolean {
    const next = receiveMessageOnPort(this.#port);
    // The log thread sent it, whose types these are.
    if (next) this.#receive(next.message as StoreReply | SharedReply);
    return next !== undefined;
  }

  #receive(told: StoreReply | SharedReply): void {
    this.#received = (this.#received + 1) | 0;
    const waiting = this.#waiting.shift();
    if (!waiting) return;
    if (this.#waiting.length === 0) this.#worker.unref();
    this.#repliedAt = performance.now();
    this.#took = this.#repliedAt - waiting.sentAt;
    if (waiting.isShared) this.#isShared = false;
    const reply = told === "counts" ? takeReply(this.#link.append, this.#losses) : told;
    this.#losses = reply.stats?.losses ?? this.#losses;
    waiting.reply.resolve(reply);
  }

  #fail(message: string): void {
    // What was answered before the end is answered.
    while (this.#receiveNext());
    this.#failure ??= new AgentError("BUFFER_UNAVAILABLE", message);
    for (const { reply } of this.#waiting.splice(0)) reply.reject(this.#failure);
  }
}
