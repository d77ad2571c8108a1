// Safeguards of "last append wins". The model of buffer, dispatcher and service detects the removal of each.
import type { Ablation } from "./ablation.ts";

const model = "unit/upload/last-append-wins.test.ts";
const window = "unit/upload/window.test.ts";
const settlements = "unit/buffer/disk/settlement-order.test.ts";
const leftOut = "unit/buffer/disk/left-out.test.ts";
const unreadable = "unit/buffer/disk/unreadable.test.ts";

export const orderAblations: readonly Ablation[] = [
  {
    safeguard: "no late records in the live lane",
    file: "buffer/disk/blocks/block-shelf.ts",
    code: '(lane === "live" || this.#unread.withholds(segment, index, record, mayHold))',
    without: "this.#unread.withholds(segment, index, record, mayHold)",
    test: model,
  },
  {
    safeguard: "late records behind those that are withheld",
    file: "buffer/disk/blocks/unread-segments.ts",
    code: "    this.#withheld.set(segment, { earliest, latest });\n",
    without: "",
    test: model,
  },
  {
    safeguard: "late points wait for points in their way",
    file: "upload/series/late-order.ts",
    code: "if (!this.#waiting.has(input) && !this.#isExtracted(input, time) && !live?.spans(time)) {",
    without: "if (this.#points >= 0) {",
    test: model,
  },
  {
    safeguard: "points from before a start are late",
    file: "buffer/disk/segments/input-marks.ts",
    code: "if (time > mark && time > this.floor)",
    without: "if (time > mark)",
    test: model,
  },
  {
    safeguard: "parking an input with all of its points",
    file: "upload/delivery/point-disposition.ts",
    code: "[...columns, ...bisection.withdraw(input)]",
    without: "columns",
    test: model,
  },
  {
    safeguard: "late records wait for a segment that cannot be read",
    file: "buffer/disk/blocks/unread-segments.ts",
    code: "      [...this.#unread].some((each) => each.first < segment.first && touches(each) && mayHold(each)) ||\n",
    without: "",
    test: unreadable,
  },
  {
    safeguard: "asking again for a segment that could not be read",
    file: "buffer/disk/disk-buffer.ts",
    code: "          if (reply.unread) this.#reader?.wake();\n",
    without: "",
    test: unreadable,
  },
  {
    safeguard: "late points wait for points that are taken out of their queue",
    file: "upload/series/late-order.ts",
    code: 'const held = lane === "live" || queue.ascending ? 0 : this.#hold(queue);',
    without: "const held = 0;",
    test: window,
  },
  {
    safeguard: "late points wait for live points that are taken out of their queue",
    file: "upload/series/late-order.ts",
    code: "        stays: (time) => this.#isExtracted(input, time),\n",
    without: "",
    test: window,
  },
  {
    safeguard: "what is late goes back with what it may replace",
    file: "upload/delivery/window.ts",
    code: 'for (const _ of this.forget("backlog"));',
    without: "{}",
    test: window,
  },
  {
    safeguard: "a late point is settled no sooner than what it may replace",
    file: "buffer/disk/blocks/settlement-order.ts",
    code: "    if (blocker === undefined) return true;",
    without: "    return true;",
    test: settlements,
  },
  {
    safeguard: "a late point that was settled is settled no more when what it may replace comes again",
    file: "buffer/disk/blocks/settlement-order.ts",
    code: "if (settlement.block < block || !this.#blocks(block, late)) return true;",
    without: "return true;",
    test: settlements,
  },
  {
    safeguard: "a late block comes again with the block that it waits for",
    file: "buffer/disk/blocks/settlement-order.ts",
    code: "return followers.filter((follower) => this.isRevoked(follower));",
    without: "return [];",
    test: settlements,
  },
  {
    safeguard: "a late block comes again when the rest of it is settled",
    file: "buffer/disk/blocks/block-shelf.ts",
    code: "    else if (this.#order.isRevoked(block)) this.release([block]);\n",
    without: "",
    test: settlements,
  },
  {
    safeguard: "the first of points with one time is tried again",
    file: "upload/delivery/retry-probes.ts",
    code: "column.times.indexOf(column.times[1 + Math.floor(this.#parts.random() * (count - 1))]!)",
    without: "1 + Math.floor(this.#parts.random() * (count - 1))",
    test: "unit/upload/retry-probes.test.ts",
  },
  {
    safeguard: "an input is not tried again before its older points are back in the buffer",
    file: "upload/delivery/retry-probes.ts",
    code: "window.isReturning(input) ? undefined : await",
    without: "await",
    test: "unit/upload/retry-probes.test.ts",
  },
  {
    safeguard: "late points that were delivered are not lost with their segment",
    file: "buffer/disk/blocks/block-shelf.ts",
    code: "      for (const settlement of this.#order.forget(id)) this.#settle(settlement);\n",
    without: "      this.#order.forget(id);\n",
    test: settlements,
  },
  {
    safeguard: "points behind late ones that wait stay behind them",
    file: "upload/delivery/window.ts",
    code: ' || (lane === "backlog" && this.#late.isWaiting(input))',
    without: "",
    test: window,
  },
  {
    safeguard: "what others settled of series that a block left out",
    file: "buffer/disk/accounts/coverage.ts",
    code: "      this.addSeries(series, covered);\n",
    without: "",
    test: leftOut,
  },
  {
    safeguard: "what others leased of series that a block left out",
    file: "buffer/disk/accounts/coverage.ts",
    code: "    for (const { series, covered } of kept) this.addSeries(series, covered);\n",
    without: "",
    test: leftOut,
  },
];
