// `tagferry test` on a terminal: one row a tag with what it read last, drawn anew as readings come.

import type { Looked } from "../shared/source-look.ts";
import type { Screen } from "../terminal/console.ts";
import { columns, visible } from "../terminal/text.ts";

interface LiveRow {
  readonly source: string;
  readonly cells: readonly string[];
  readonly good: boolean;
}

/** As often as an eye follows, in milliseconds. */
const everyMs = 200;

export class LiveTable {
  readonly #screen: Screen;
  readonly #cells: (looked: Looked) => readonly string[];
  readonly #rows = new Map<string, LiveRow>();
  readonly #states = new Map<string, string>();
  #readings = 0;
  #due: NodeJS.Timeout | undefined;

  constructor(screen: Screen, sources: readonly string[], cells: (looked: Looked) => readonly string[]) {
    this.#screen = screen;
    this.#cells = cells;
    for (const source of sources) this.#states.set(source, "connecting");
    this.#draw();
  }

  /** Takes what came of one source. */
  add(source: string, readings: readonly Looked[]): void {
    this.#states.set(source, "reads");
    this.#readings += readings.length;
    for (const looked of readings) {
      const { input, tag, address, value } = looked;
      const key = `${source} ${value === undefined ? `${tag} ${address}` : input}`;
      // A tag that gave nothing has no Input ID yet; the row of its address is replaced when it has.
      if (value !== undefined) this.#rows.delete(`${source} ${tag} ${address}`);
      this.#rows.set(key, { source, cells: this.#cells(looked), good: value !== undefined });
    }
    this.#due ??= setTimeout(() => this.#draw(), everyMs);
  }

  /** The source will not have it, or has ended. */
  failed(source: string, message: string): void {
    this.#states.set(source, message);
    this.#due ??= setTimeout(() => this.#draw(), everyMs);
  }

  /** Draws what is there, for the last time. */
  end(): void {
    this.#draw();
    clearTimeout(this.#due);
  }

  #draw(): void {
    clearTimeout(this.#due);
    this.#due = undefined;
    const rows = [...this.#rows.values()].toSorted((a, b) => Number(a.good) - Number(b.good));
    const silent = [...this.#states]
      .filter(([, state]) => state !== "reads")
      .map(([name, state]) => `${name}: ${state}`);
    // Head, sources that are silent, rows, and the line that says how many there is no room for.
    const room = Math.max(1, this.#screen.rows - 3 - silent.length);
    const shown = rows.slice(0, room);
    const good = rows.filter((row) => row.good).length;
    this.#screen.draw([
      `${good} of ${rows.length} with a good value, ${this.#readings} readings; ^C ends it`,
      ...silent.map(visible),
      ...columns(shown.map(({ cells }) => cells)),
      ...(rows.length > shown.length ? [`  and ${rows.length - shown.length} more; --source shows one source`] : []),
    ]);
  }
}
