// Log lines that wait for the collector, bounded in number and length.

const mostLines = 2_000;
/** In UTF-16 code units. */
const mostLength = 1024 * 1024;
/** Lines of one request. */
const mostSent = 500;

export class LogQueue {
  #lines: string[] = [];
  #length = 0;
  #dropped = 0;

  get size(): number {
    return this.#lines.length;
  }

  add(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#lines.length > mostLines || this.#length > mostLength) {
      this.#length -= this.#lines.shift()?.length ?? 0;
      this.#dropped++;
    }
  }

  /** The oldest lines; they stay until `remove`. */
  first(): readonly string[] {
    return this.#lines.slice(0, mostSent);
  }

  /** Removes those of `lines` that were not dropped meanwhile. */
  remove(lines: readonly string[]): void {
    const sent = new Set(lines);
    const most = Math.min(lines.length, this.#lines.length);
    let count = 0;
    while (count < most && sent.has(this.#lines[count] ?? "")) this.#length -= this.#lines[count++]?.length ?? 0;
    this.#lines.splice(0, count);
  }

  /** Lines dropped since the last call. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }
}
