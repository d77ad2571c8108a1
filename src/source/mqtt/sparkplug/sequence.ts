// Puts the messages of one edge node in the order of their numbers, 0 to 255 and round again. Pure.
//
// Messages on different topics may overtake each other on the way. One ahead of the number that is due waits until the
// gap before it closes. The same holds for the birth of a device that comes before that of its node: its number is one of
// a life that has not begun yet, so that whatever follows it waits with it.

/** What waits under a number. */
export interface Waiting<T> {
  readonly seq: number;
  readonly item: T;
  /** It belongs to a life of the node that has not begun: a device's birth. */
  readonly opens: boolean;
  /** Monotonic milliseconds. */
  readonly since: number;
}

export class Sequence<T> {
  /** The number that is due; undefined: there was no birth to count from. */
  #due: number | undefined;
  /** In the order they came. At most 256, one for each number. */
  #waiting: Waiting<T>[] = [];

  /** Monotonic milliseconds since when the oldest has been waiting; undefined: none is. */
  get waitingSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** Whether a message with this number is next, or so late that it was abandoned. Advances if so. */
  admits(seq: number, opens: boolean): boolean {
    if (seq === this.#due) {
      this.#due = next(seq);
      return true;
    }
    if (opens || this.#waiting.length > 0) return false;
    return this.#due === undefined || distance(this.#due, seq) < 0;
  }

  /** Lets `waiting` wait; gives back what waited under the same number, if any did, which can only be of another life. */
  hold(waiting: Waiting<T>): Waiting<T> | undefined {
    const at = this.#waiting.findIndex(({ seq }) => seq === waiting.seq);
    const [replaced] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#waiting.push(waiting);
    return replaced;
  }

  /** What no longer has to wait, since the gap before it is closed. */
  *closed(): Iterable<Waiting<T>> {
    for (;;) {
      const at = this.#waiting.findIndex(({ seq }) => seq === this.#due);
      const [found] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!found) return;
      this.#due = next(found.seq);
      yield found;
    }
  }

  /** A life begins with the number `seq`. Gives back what waited and is of the life before. */
  begin(seq: number | undefined): readonly Waiting<T>[] {
    const before = this.#due;
    this.#due = seq === undefined ? undefined : next(seq);
    const due = this.#due;
    if (due === undefined) return this.#take(() => true);
    if (before === undefined) return [];
    return this.#take((each) => ahead(before, each.seq) < ahead(due, each.seq));
  }

  /** The life is over. Gives back what waited, but for what is of a life to come. */
  end(): readonly Waiting<T>[] {
    const opening = this.#waiting.findIndex(({ opens }) => opens);
    const late = new Set(opening < 0 ? this.#waiting : this.#waiting.slice(0, opening));
    const before = this.#take((each) => late.has(each));
    this.#due = undefined;
    return before;
  }

  /** Gives up the gap: everything that waits, by number; counting goes on behind it. */
  giveUp(): readonly Waiting<T>[] {
    const all = this.#take(() => true);
    const last = all.at(-1);
    if (this.#due !== undefined && last && distance(this.#due, last.seq) >= 0) this.#due = next(last.seq);
    return all;
  }

  #take(taken: (waiting: Waiting<T>) => boolean): readonly Waiting<T>[] {
    const all = this.#waiting.filter(taken);
    this.#waiting = this.#waiting.filter((each) => !all.includes(each));
    const due = this.#due;
    return due === undefined ? all : all.toSorted((a, b) => distance(due, a.seq) - distance(due, b.seq));
  }
}

function next(seq: number): number {
  return (seq + 1) % 256;
}

function ahead(from: number, seq: number): number {
  return (seq - from) & 0xff;
}

/** From -128 to 127: negative is behind. */
function distance(from: number, seq: number): number {
  return ((seq - from + 128) & 0xff) - 128;
}
