// The safeguards of "last append wins", each found by the model of buffer, dispatcher and service together.
import type { Ablation } from "./ablation.ts";

const model = "unit/upload/last-append-wins.test.ts";

export const orderAblations: readonly Ablation[] = [
  {
    safeguard: "no late records in the live lane",
    file: "buffer/disk/block-shelf.ts",
    code: '(lane === "live" || this.#mayReplaceUnread(segment, index, record))',
    without: "this.#mayReplaceUnread(segment, index, record)",
    test: model,
  },
  {
    safeguard: "late records behind those that are withheld",
    file: "buffer/disk/block-shelf.ts",
    code: '      if (isWithheld && lane === "backlog") this.#withhold(segment, index, record);\n',
    without: "",
    test: model,
  },
  {
    safeguard: "late points wait for points in their way",
    file: "upload/late-order.ts",
    code: "if (!this.#waiting.has(input) && !this.#isExtracted(input, time) && !live?.spans(time)) {",
    without: "if (this.#points >= 0) {",
    test: model,
  },
  {
    safeguard: "points from before a start are late",
    file: "buffer/disk/input-marks.ts",
    code: "if (time > mark && time > this.floor)",
    without: "if (time > mark)",
    test: model,
  },
  {
    safeguard: "parking an input with all of its points",
    file: "upload/outcome-handler.ts",
    code: "[...columns, ...bisection.withdraw(input)]",
    without: "columns",
    test: model,
  },
];
