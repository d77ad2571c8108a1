// Safeguards of "last append wins". The model of buffer, dispatcher and service detects the removal of each.
import type { Ablation } from "./ablation.ts";

const model = "unit/upload/last-append-wins.test.ts";
const window = "unit/upload/window.test.ts";
const settlements = "unit/buffer/disk/settlement-order.test.ts";
const leftOut = "unit/buffer/disk/left-out.test.ts";
const unreadable = "unit/buffer/disk/unreadable.test.ts";

export const orderAblations: readonly Ablation[] = [
  {
    safeguard: "keeping late records out of the live lane",
    file: "buffer/disk/blocks/lease-table.ts",
    code: '(lane === "live" || this.#unread.withholds(segment, index, record, mayHold))',
    without: "this.#unread.withholds(segment, index, record, mayHold)",
    test: model,
  },
  {
    safeguard: "holding back late records after withheld ones",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "    this.#withheld.set(segment, { earliest, latest });\n",
    without: "",
    test: model,
  },
  {
    safeguard: "holding late points until the points that they may replace are sent",
    file: "upload/series/late-order.ts",
    code: "if (!this.#waiting.has(input) && !this.#isExtracted(input, time) && !live?.spans(time)) {",
    without: "if (this.#points >= 0) {",
    test: model,
  },
  {
    safeguard: "marking points from before a start as late",
    file: "buffer/disk/segments/late-points.ts",
    code: "if (time > mark && time > this.floor)",
    without: "if (time > mark)",
    test: model,
  },
  {
    safeguard: "parking all points of an input",
    file: "upload/delivery/point-disposition.ts",
    code: "[...columns, ...bisection.withdraw(input), ...queued]",
    without: "[...columns, ...queued]",
    test: model,
  },
  {
    safeguard: "holding late records until an unreadable segment is read",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "      [...this.#unread].some((each) => each.first < segment.first && touches(each) && mayHold(each)) ||\n",
    without: "",
    test: unreadable,
  },
  {
    safeguard: "reading again after a segment was unreadable",
    file: "buffer/disk/disk-buffer.ts",
    code: "          if (reply.unread) opened?.wake();\n",
    without: "",
    test: unreadable,
  },
  {
    safeguard: "asking an empty log again after blocks were released",
    file: "buffer/disk/worker/disk-reader.ts",
    code: ".catch(() => {});\n    this.wake();\n",
    without: ".catch(() => {});\n",
    test: "contract/disk-buffer.test.ts",
    name: "asked again only after",
  },
  {
    safeguard: "asking an empty log again after a settlement, which may release late points",
    file: "buffer/disk/worker/disk-reader.ts",
    code: "    this.wake();\n    await settled;\n",
    without: "    await settled;\n",
    test: "contract/disk-buffer.test.ts",
    name: "asked again only after",
  },
  {
    safeguard: "holding late points while earlier ones are out of their queue",
    file: "upload/series/late-order.ts",
    code: 'const held = lane === "live" || queue.ascending ? 0 : this.#hold(queue);',
    without: "const held = 0;",
    test: window,
  },
  {
    safeguard: "holding late points while live ones are out of their queue",
    file: "upload/series/late-order.ts",
    code: "        stays: (time) => this.#isExtracted(input, time),\n",
    without: "",
    test: window,
  },
  {
    safeguard: "releasing late points together with those that they may replace",
    file: "upload/window/window.ts",
    code: 'for (const _ of this.forget("backlog"));',
    without: "{}",
    test: window,
  },
  {
    safeguard: "settling a late point after the points that it may replace",
    file: "buffer/disk/segments/late-points.ts",
    code: "    if (blocker === undefined) return true;",
    without: "    return true;",
    test: settlements,
  },
  {
    safeguard: "revoking the settlement of a late point when a point that it may replace is released",
    file: "buffer/disk/segments/late-points.ts",
    code: "if (settlement.block <= block || !this.#blocks(block, late)) return true;",
    without: "return true;",
    test: settlements,
  },
  {
    safeguard: "releasing a late block together with the block that it waits for",
    file: "buffer/disk/segments/late-points.ts",
    code: "return followers.filter((follower) => this.#isRevoked(follower));",
    without: "return [];",
    test: settlements,
  },
  {
    safeguard: "releasing a late block whose settlement was revoked",
    file: "buffer/disk/segments/late-points.ts",
    code: "    else if (this.#isRevoked(block)) this.#release([block]);\n",
    without: "",
    test: settlements,
  },
  {
    safeguard: "retrying the first of several points with the same time",
    file: "upload/delivery/retry-probes.ts",
    code: "column.times.indexOf(column.times[1 + Math.floor(this.#parts.random() * (count - 1))]!)",
    without: "1 + Math.floor(this.#parts.random() * (count - 1))",
    test: "unit/upload/retry-probes.test.ts",
  },
  {
    safeguard: "waiting for an input's older points to return to the buffer before a retry",
    file: "upload/delivery/retry-probes.ts",
    code: "window.isReturning(input) ? undefined : await",
    without: "await",
    test: "unit/upload/retry-probes.test.ts",
  },
  {
    safeguard: "settling delivered late points when their segment is dropped",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "      this.#order.settleWaiting(id);\n",
    without: "",
    test: settlements,
  },
  {
    safeguard: "holding points behind late ones that wait",
    file: "upload/window/window.ts",
    code: ' || (lane === "backlog" && this.#late.isWaiting(input))',
    without: "",
    test: window,
  },
  {
    safeguard: "merging other blocks' settlements of series that a block omitted",
    file: "buffer/disk/counters/coverage.ts",
    code: "      this.addSeries(series, covered);\n",
    without: "",
    test: leftOut,
  },
  {
    safeguard: "merging other blocks' leases of series that a block omitted",
    file: "buffer/disk/counters/coverage.ts",
    code: "    for (const { series, covered } of kept) this.addSeries(series, covered);\n",
    without: "",
    test: leftOut,
  },
];
