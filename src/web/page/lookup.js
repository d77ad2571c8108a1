// Asks the agent for what is not in the stream, when the stream says that it has changed.

export class Lookup {
  #path;
  #everyMs;
  #key;
  #at = Number.NEGATIVE_INFINITY;
  #busy = false;
  /** The latest answer; undefined: none yet. */
  answer;

  /** At most one request each `everyMs` milliseconds. */
  constructor(path, everyMs) {
    this.#path = path;
    this.#everyMs = everyMs;
  }

  /** Asks if `key` is another one than at the last answer, and calls `show` when there is a new one. What fails is tried again. */
  async refresh(key, show) {
    if (this.#busy || key === this.#key || performance.now() - this.#at < this.#everyMs) return;
    this.#busy = true;
    this.#at = performance.now();
    try {
      const response = await fetch(this.#path);
      if (!response.ok) return;
      this.answer = await response.json();
      this.#key = key;
      show();
    } catch {
      // That the agent is silent is told by the stream.
    } finally {
      this.#busy = false;
    }
  }
}
