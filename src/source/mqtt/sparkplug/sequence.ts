// Orders the messages of one edge node by their sequence numbers, 0 to 255 with wrap-around.
//
// Messages on different topics may arrive out of order. A message ahead of the expected number waits until the gap
// closes. A device birth that arrives before its node's birth also waits. Its number belongs to a session of the node
// that has not begun, and later messages wait with it.

export interface Waiting<T> {
  readonly seq: number;
  readonly item: T;
  /** It is a device birth, which may belong to a session of the node that has not begun. */
  readonly opens: boolean;
  /** Monotonic milliseconds. */
  readonly since: number;
}

export class Sequence<T> {
  /** Expected number. Undefined: no birth defined one. */
  #due: number | undefined;
  /** In order of arrival; at most 256, one per number. */
  #waiting: Waiting<T>[] = [];

  /** Since when the oldest message has been waiting, in monotonic milliseconds. Undefined: none waits. */
  get waitingSince(): number | undefined {
    return this.#waiting[0]?.since;
  }

  /** Whether the message is next, or late after its gap was abandoned. Advances the expected number if it is next. */
  admits(seq: number, opens: boolean): boolean {
    if (seq === this.#due) {
      this.#due = next(seq);
      return true;
    }
    if (opens || this.#waiting.length > 0) return false;
    return this.#due === undefined || distance(this.#due, seq) < 0;
  }

  /** Holds a message. Returns the one that it replaces under the same number, which belongs to another session. */
  hold(waiting: Waiting<T>): Waiting<T> | undefined {
    const at = this.#waiting.findIndex(({ seq }) => seq === waiting.seq);
    const [replaced] = at < 0 ? [] : this.#waiting.splice(at, 1);
    this.#waiting.push(waiting);
    return replaced;
  }

  /** Messages that no longer have to wait, since their gap has closed. */
  *closed(): Iterable<Waiting<T>> {
    for (;;) {
      const at = this.#waiting.findIndex(({ seq }) => seq === this.#due);
      const [found] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!found) return;
      this.#due = next(found.seq);
      yield found;
    }
  }

  /** Starts a session with the number `seq`. Returns the waiting messages of the previous session. */
  begin(seq: number | undefined): readonly Waiting<T>[] {
    const before = this.#due;
    this.#due = seq === undefined ? undefined : next(seq);
    const due = this.#due;
    if (due === undefined) return this.#take(() => true);
    if (before === undefined) return [];
    return this.#take((each) => ahead(before, each.seq) < ahead(due, each.seq));
  }

  /** Ends the session. Returns its waiting messages, without those of a later session. */
  end(): readonly Waiting<T>[] {
    const opening = this.#waiting.findIndex(({ opens }) => opens);
    const late = new Set(opening < 0 ? this.#waiting : this.#waiting.slice(0, opening));
    const before = this.#take((each) => late.has(each));
    this.#due = undefined;
    return before;
  }

  /** Abandons the gap. Returns all waiting messages by number, and continues after the last one. */
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

/** Signed distance from -128 to 127; negative is behind. */
function distance(from: number, seq: number): number {
  return ((seq - from + 128) & 0xff) - 128;
}
