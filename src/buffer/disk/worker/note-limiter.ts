// Keeps the log readable while something fails again and again: one line in ten seconds for each kind of message.
import type { Note } from "../files/note.ts";

const everyMs = 10_000;

interface Held {
  readonly at: number;
  /** Lines held back since, and the points they told of. */
  repeats: number;
  points: number;
}

export class NoteLimiter {
  readonly #held = new Map<string, Held>();

  /** The line to write, with how many like it were held back and all their points; undefined: hold it back. `now` in monotonic milliseconds. */
  admit(note: Note, now: number): Note | undefined {
    const held = this.#held.get(note.message);
    const points = typeof note.fields.points === "number" ? note.fields.points : 0;
    if (held && now - held.at < everyMs) {
      held.repeats++;
      held.points += points;
      return undefined;
    }
    this.#held.set(note.message, { at: now, repeats: 0, points: 0 });
    if (!held || held.repeats === 0) return note;
    const fields = { ...note.fields, repeats: held.repeats, ...(points > 0 ? { points: points + held.points } : {}) };
    return { ...note, fields };
  }
}
