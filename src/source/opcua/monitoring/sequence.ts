// Detects missing messages. Sequence numbers wrap from 2^32-1 to 1 (OPC 10000-4, 5.13.1.1). A keep-alive carries the
// number of the next message, not the last.
import type { Acknowledgement } from "./notification.ts";

const last = 2 ** 32 - 1;
/** If more are missing, only those that the server lists are requested. */
const mostMissing = 10_000;

export interface NotificationHead {
  readonly sequenceNumber: number;
  readonly keepAlive: boolean;
  /** Messages that the server keeps for retransmission. */
  readonly available: readonly number[];
}

export interface Missing {
  /** Messages to request before this one, in order. */
  readonly missing: readonly number[];
  /** The message was received before. */
  readonly known: boolean;
  /** Messages are missing that Republish cannot return. */
  readonly beyond: boolean;
  /** Another agent may have acknowledged the first ones of `missing`. */
  readonly lags: boolean;
}

export class SequenceTracker {
  #next: number | undefined;
  #first: number | undefined;
  /** No message has arrived on this connection. */
  #unheard = true;
  #lags: boolean;

  /**
   * `next`: the first message that is not on disk. Undefined: unknown, after resuming a subscription. `lags`: see
   * `Positions.lags`.
   */
  constructor(next: number | undefined, lags = false) {
    this.#next = next;
    this.#first = next;
    this.#lags = lags;
  }

  /** Number of the next message. Undefined if unknown. */
  get next(): number | undefined {
    return this.#next;
  }

  /** Whether a message was on disk before this connection began. */
  isOld(sequenceNumber: number): boolean {
    return this.#first !== undefined && behind(sequenceNumber, this.#first);
  }

  /** Records that message `next` was fetched before it was announced. */
  fetched(): void {
    if (this.#next !== undefined) this.#next = after(this.#next);
    this.#lags = false;
  }

  arrived({ sequenceNumber, keepAlive, available }: NotificationHead): Missing {
    const unheard = this.#unheard;
    this.#unheard = false;
    const old = this.#next !== undefined && behind(sequenceNumber, this.#next);
    // The server has restarted its numbering.
    const renumbered = unheard && !keepAlive && this.isOld(sequenceNumber);
    // Old numbers now identify other messages.
    if (renumbered) this.#first = undefined;
    // Some servers repeat their last number in a keep-alive instead of the next. Nothing is missing then.
    if (old && !renumbered) return { missing: [], known: !keepAlive, beyond: false, lags: false };
    const kept = available.filter((number) => behind(number, sequenceNumber) && !this.#had(number));
    const between = this.#next === undefined || renumbered ? [] : range(this.#next, sequenceNumber);
    this.#next = keepAlive ? sequenceNumber : after(sequenceNumber);
    const lags = this.#lags;
    this.#lags = false;
    // Also request unacknowledged messages that are on disk, so that they get acknowledged.
    const asked = new Set([...(between ?? []), ...(unheard || !between ? kept : [])]);
    return { missing: [...asked].toSorted(inOrder), known: false, beyond: renumbered || between === undefined, lags };
  }

  /** Whether a message arrived on this connection. */
  #had(number: number): boolean {
    const [first, next] = [this.#first, this.#next];
    return first !== undefined && next !== undefined && !behind(number, first) && behind(number, next);
  }
}

/** Numbers from `from` up to but excluding `to`. Undefined if there are too many. */
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

/** Comparator for the order of sending. */
export function inOrder(a: number, b: number): number {
  return a === b ? 0 : behind(a, b) ? -1 : 1;
}

/** Whether `a` precedes `b`, with wrap-around. */
export function behind(a: number, b: number): boolean {
  return a !== b && (b - a + last) % last < last / 2;
}

/** Tracks a subscription of an earlier session until its kept messages are stored. */
export class FormerSubscription {
  readonly id: number;
  readonly #over = Promise.withResolvers<void>();
  /** Resolves once it is drained and all its messages are on disk. */
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
