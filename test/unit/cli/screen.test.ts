// A table that redraws itself in place.
import { expect, test } from "vitest";
import { redrawn } from "../../../src/cli/terminal/console.ts";

/** The screen content of a terminal that supports only the control sequences used. */
function shown(writings: readonly string[]): readonly string[] {
  const lines: string[] = [];
  let row = 0;
  for (const writing of writings)
    for (const part of writing.replaceAll("\u001b", "ESC").split(/(\r|\n|ESC\[\d*[AKJ])/)) {
      const up = /^ESC\[(\d+)A$/.exec(part);
      if (up) row -= Number(up[1]);
      else if (part === "\n") row++;
      else if (part === "ESC[J") lines.length = row;
      else if (part !== "\r" && part !== "ESC[K" && part !== "") lines[row] = part;
    }
  return lines;
}

test("each drawing replaces the previous one, a shorter one leaves no rest of it", () => {
  const drawings = [
    ["a", "b", "c"],
    ["a", "longer than the screen is"],
    ["d", "e", "f", "g"],
  ];
  const writings = drawings.map((lines, i) => redrawn(lines, drawings[i - 1]?.length ?? 0, 12));
  expect(shown(writings.slice(0, 1))).toEqual(["a", "b", "c"]);
  expect(shown(writings.slice(0, 2))).toEqual(["a", "longer than"]);
  expect(shown(writings)).toEqual(["d", "e", "f", "g"]);
});
