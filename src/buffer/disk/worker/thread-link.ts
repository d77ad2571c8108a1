// What the main thread and the log thread are connected by, made so that neither sleeps while they answer each other at once:
// to be woken takes a thread longer than a small commit takes, most of all on a machine that has nothing else to do.
//
// Each message is counted in memory that both see, once it was sent. Who expects the next one soon looks at the count for a
// while before it goes to sleep. Soon is what the last ones were: nobody looks out between commits that come now and then,
// nor for a disk that takes long; and it is left for a while where it was in vain or the machine is busy.
import { availableParallelism } from "node:os";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { type SharedAppend, sharedAppend } from "./shared-append.ts";

/** Milliseconds. A message is looked out for when the last one came within that time, and so long at most. */
export const lookOutMs = 1;
/** Messages that are not looked out for once it was in vain, as for a sync that takes long now and then. */
const leftWhenLate = 8;
/** The same once somebody else had the core, so many milliseconds between two looks. */
const leftWhenBusy = 512;
const busyMs = 0.15;

export interface ThreadLink {
  /** Requests come by it, and replies go. */
  readonly port: MessagePort;
  /** How many requests were sent, how many replies; one integer each, which goes round. */
  readonly requests: Int32Array<SharedArrayBuffer>;
  readonly replies: Int32Array<SharedArrayBuffer>;
  readonly append: SharedAppend;
  /** There is a core for each thread. On a single one, who looks out for the other would keep it from working. */
  readonly brisk: boolean;
}

/** One side's decision whether to look out for the next message. */
export class LookOut {
  #left = 0;
  #lookedAt = 0;

  /** The last message came `waited` milliseconds after what it follows. */
  isWorth(waited: number): boolean {
    if (waited >= lookOutMs) return false;
    if (this.#left === 0) return true;
    this.#left--;
    return false;
  }

  /** To be called before the first look. */
  begin(): void {
    this.#lookedAt = performance.now();
  }

  /** To be called at each look. Says whether to go on, where the message is not there. */
  goesOn(since: number): boolean {
    const now = performance.now();
    // Who is awake for nothing loses its turn to those who want the core, and then comes too late.
    if (now - this.#lookedAt > busyMs) this.#left = leftWhenBusy;
    else if (now - since >= lookOutMs) this.#left = leftWhenLate;
    this.#lookedAt = now;
    return this.#left === 0;
  }
}

/** Both ends: `port` is the other one's. */
export function threadLink(brisk = availableParallelism() > 1): {
  readonly link: ThreadLink;
  readonly port: MessagePort;
} {
  const { port1, port2 } = new MessageChannel();
  const count = () => new Int32Array(new SharedArrayBuffer(4));
  return { link: { port: port1, requests: count(), replies: count(), append: sharedAppend(), brisk }, port: port2 };
}
