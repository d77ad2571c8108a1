// A part of the terminal that is drawn anew: what stands there last stays when it is over.
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Puts `lines` in the place of those before. They must be `visible`; what is wider than the screen is cut. */
  draw(lines: readonly string[]): void;
}

/** What is written to a terminal so that `lines` stand where the last `before` lines stood. Pure. */
export function redrawn(lines: readonly string[], before: number, columns: number): string {
  const up = before > 0 ? `\u001b[${before}A` : "";
  // Each line is cleared behind its text, what is left of the longer table of before below.
  return `\r${up}${lines.map((line) => `${line.slice(0, Math.max(1, columns - 1))}\u001b[K\n`).join("")}\u001b[J`;
}

/** Undefined where standard output is no terminal. */
export function processScreen(): Screen | undefined {
  const { stdout } = process;
  if (stdout.isTTY !== true) return undefined;
  let before = 0;
  const screen: Screen = {
    // A serial console says 0.
    get columns() {
      return stdout.columns || 80;
    },
    get rows() {
      return stdout.rows || 24;
    },
    draw(lines) {
      stdout.write(redrawn(lines, before, screen.columns));
      before = lines.length;
    },
  };
  return screen;
}
