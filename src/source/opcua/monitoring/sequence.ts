// Which notification messages are missing. Sequence numbers count from 1 to 2^32-1 and then from 1 again (OPC 10000-4,
// 5.13.1.1); a keep-alive carries the number of the next message, not of the last.
import type { Acknowledgement } from "./notification.ts";

const last = 2 ** 32 - 1;
/** Of more than this only those are asked for that the server says it has. */
const mostMissing = 10_000;

export interface NotificationHead {
  readonly sequenceNumber: number;
  readonly keepAlive: boolean;
  /** Messages that the server keeps for retransmission. */
  readonly available: readonly number[];
}

export interface Missing {
  /** Numbers of the messages to ask for again before this one, in order. */
  readonly missing: readonly number[];
  /** The message was had before. */
  readonly known: boolean;
  /** Messages are missing that Republish cannot return. */
  readonly beyond: boolean;
}

export class SequenceTracker {
  #next: number | undefined;
  #first: number | undefined;
  /** Nothing was heard yet of what the server has kept. */
  #unheard = true;

  /** `next`: number of the first message that is not on disk. Undefined: a resumed subscription whose number is unknown. */
  constructor(next: number | undefined) {
    this.#next = next;
    this.#first = next;
  }

  /** Number of the next message. Undefined: unknown. */
  get next(): number | undefined {
    return this.#next;
  }

  /** Whether a message was on disk before this connection began. */
  isOld(sequenceNumber: number): boolean {
    return this.#first !== undefined && behind(sequenceNumber, this.#first);
  }

  /** The message `next` was had without being told of. */
  fetched(): void {
    if (this.#next !== undefined) this.#next = after(this.#next);
  }

  arrived({ sequenceNumber, keepAlive, available }: NotificationHead): Missing {
    const unheard = this.#unheard;
    this.#unheard = false;
    const old = this.#next !== undefined && behind(sequenceNumber, this.#next);
    // The first message has a number from before this connection: the server has restarted its numbering.
    const anew = unheard && !keepAlive && this.isOld(sequenceNumber);
    // From here on its numbers mean other messages.
    if (anew) this.#first = undefined;
    // Some servers repeat their last number in a keep-alive instead of announcing the next: no news either way.
    if (old && !anew) return { missing: [], known: !keepAlive, beyond: false };
    const kept = available.filter((number) => behind(number, sequenceNumber) && !this.#had(number));
    const between = this.#next === undefined || anew ? [] : range(this.#next, sequenceNumber);
    this.#next = keepAlive ? sequenceNumber : after(sequenceNumber);
    // What is on disk and was not acknowledged is asked for, too: the server is rid of it then.
    const asked = new Set([...(between ?? []), ...(unheard || !between ? kept : [])]);
    return { missing: [...asked].toSorted(inOrder), known: false, beyond: anew || between === undefined };
  }

  /** Whether a message was had since this connection began. */
  #had(number: number): boolean {
    const [first, next] = [this.#first, this.#next];
    return first !== undefined && next !== undefined && !behind(number, first) && behind(number, next);
  }
}

/** Numbers from `from` up to the one before `to`. Undefined: there are too many. */
function range(from: number, to: number): number[] | undefined {
  const numbers: number[] = [];
  for (let number = from; number !== to; number = after(number)) {
    if (numbers.length >= mostMissing) return undefined;
    numbers.push(number);
  }
  return numbers;
}

export function after(number: number): number {
  return number === last ? 1 : number + 1;
}

/** For sorting: the order in which messages were sent. */
export function inOrder(a: number, b: number): number {
  return a === b ? 0 : behind(a, b) ? -1 : 1;
}

/** Whether `a` came before `b`, the numbers wrapping around. */
export function behind(a: number, b: number): boolean {
  return a !== b && (b - a + last) % last < last / 2;
}

/** Keeps account of a subscription of an earlier session while it hands over what it has kept. */
export class FormerSubscription {
  readonly id: number;
  readonly #over = Promise.withResolvers<void>();
  /** Resolves once it has no more and all that it gave is on disk. */
  readonly over = this.#over.promise;
  readonly #open = new Set<number>();
  #ended = false;

  constructor(id: number) {
    this.id = id;
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
