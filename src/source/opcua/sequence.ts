// Which notification messages are missing. Sequence numbers count from 1 to 2^32-1 and then from 1 again (OPC 10000-4,
// 5.13.1.1); a keep-alive carries the number of the next message, not of the last.

const last = 2 ** 32 - 1;
/** More than this is no gap but a restart of the numbers. */
const mostMissing = 10_000;

export interface NotificationHead {
  readonly sequenceNumber: number;
  readonly keepAlive: boolean;
  /** Messages that the server keeps for retransmission. */
  readonly available: readonly number[];
}

/** Keeps account of one subscription. */
export class SequenceTracker {
  #next: number | undefined;

  /** `next`: number of the first message; undefined when a subscription is taken up again and nobody knows. */
  constructor(next: number | undefined) {
    this.#next = next;
  }

  /**
   * Numbers of the messages to ask for again before this one, in order. A message that was had before gives none and
   * `known` true.
   */
  arrived({ sequenceNumber, keepAlive, available }: NotificationHead): { missing: number[]; known: boolean } {
    const old = this.#next !== undefined && behind(sequenceNumber, this.#next);
    // Some servers repeat their last number in a keep-alive instead of announcing the next: no news either way.
    if (old) return { missing: [], known: !keepAlive };
    const missing = this.#missing(sequenceNumber, available);
    this.#next = keepAlive ? sequenceNumber : after(sequenceNumber);
    return { missing, known: false };
  }

  #missing(upTo: number, available: readonly number[]): number[] {
    if (this.#next === undefined) return available.filter((number) => behind(number, upTo)).toSorted(inOrder);
    const numbers: number[] = [];
    for (let number = this.#next; number !== upTo && numbers.length <= mostMissing; number = after(number))
      numbers.push(number);
    return numbers.length > mostMissing ? [] : numbers;
  }
}

function after(number: number): number {
  return number === last ? 1 : number + 1;
}

/** For sorting: the order in which messages were sent. */
export function inOrder(a: number, b: number): number {
  return a === b ? 0 : behind(a, b) ? -1 : 1;
}

/** Whether `a` came before `b`, the numbers wrapping around. */
function behind(a: number, b: number): boolean {
  return a !== b && (b - a + last) % last < last / 2;
}
