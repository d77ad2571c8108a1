// What the main thread and the log thread are connected by, made so that neither sleeps while they answer each other at once:
// to be woken takes a thread longer than a small commit takes, most of all on a machine that has nothing else to do.
//
// Each message is counted in memory that both see, once it was sent. Who expects the next one soon looks at the count for a
// while before it goes to sleep. Soon is what the last ones were: nobody looks out between commits that come now and then,
// nor for a disk that takes long; and where looking out was in vain, as on a busy machine, it is left for a while.
import { availableParallelism } from "node:os";
import { MessageChannel, type MessagePort } from "node:worker_threads";
import { type SharedAppend, sharedAppend } from "./shared-append.ts";

/** Milliseconds. A message is looked out for when the last one came within that time, and so long at most. */
export const lookOutMs = 1;
/** Most messages that are not looked out for in a row. */
const mostLeft = 512;

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
  /** Times in a row that it was in vain. */
  #misses = 0;
  #left = 0;

  /** The last message came `waited` milliseconds after what it follows. */
  isWorth(waited: number): boolean {
    if (waited >= lookOutMs) return false;
    if (this.#left === 0) return true;
    this.#left--;
    return false;
  }

  /** It was done, and the message came or did not. Once in vain is chance; then it is left twice as long each time. */
  done(came: boolean): void {
    this.#misses = came ? 0 : this.#misses + 1;
    this.#left = this.#misses < 2 ? 0 : Math.min(mostLeft, 2 ** (this.#misses + 1));
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
