// The latest lines of the log, kept in memory for whoever has to find out what happened. Bounded in lines and in bytes.

/** In UTF-16 code units, which JSON lines hardly exceed in bytes. */
const maxLength = 1024 * 1024;
const maxLines = 5_000;

export class RecentLines {
  #lines: string[] = [];
  #length = 0;
  /** Lines at the front that were forgotten; cut off now and then, which is cheaper than each time. */
  #forgotten = 0;

  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#length > maxLength || this.#lines.length - this.#forgotten > maxLines) {
      this.#length -= this.#lines[this.#forgotten]?.length ?? 0;
      this.#lines[this.#forgotten++] = "";
    }
    if (this.#forgotten < maxLines) return;
    this.#lines = this.#lines.slice(this.#forgotten);
    this.#forgotten = 0;
  }

  /** Oldest first, without line ends. */
  lines(): readonly string[] {
    return this.#lines.slice(this.#forgotten).map((line) => line.trimEnd());
  }
}
