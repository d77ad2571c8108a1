// Safeguards of the buffer's counters: which files, states and losses belong to it, and which points a full buffer
// drops.
import type { Ablation } from "./ablation.ts";

const accounts = "unit/buffer/disk/accounts.test.ts";
const overflow = "unit/buffer/disk/overflow.test.ts";
const scrub = "unit/buffer/disk/scrub.test.ts";

export const bufferAccountAblations: readonly Ablation[] = [
  {
    safeguard: "a point that is not later than its input's mark is late",
    file: "buffer/disk/segments/input-marks.ts",
    code: "if (time > mark && time > this.floor) {",
    without: "if (true) {",
    test: "unit/buffer/disk/input-marks.test.ts",
  },
  {
    safeguard: "only a repeat of the newest value is dropped",
    file: "buffer/disk/segments/input-marks.ts",
    code: "if (Object.is(this.#values[input], value)) continue;",
    without: "continue;",
    test: "unit/buffer/disk/input-marks.test.ts",
  },
  {
    safeguard: "leased points of a dropped segment are lost only when they come back",
    file: "buffer/disk/blocks/block-shelf.ts",
    code: "    for (const [id, series] of blocks)\n      this.dropped.add(id,",
    without: "    for (const [id, series] of new Map<number, SeriesOut>())\n      this.dropped.add(id,",
    test: overflow,
  },
  {
    safeguard: "what comes back after its segment was dropped is lost",
    file: "buffer/disk/blocks/dropped-blocks.ts",
    code: "    this.#accounts.losses.add(block.reason, loss);\n",
    without: "",
    test: overflow,
    name: "a segment with leased",
  },
  {
    safeguard: "a settlement of points that nothing brings back is synced",
    file: "buffer/disk/log/store.ts",
    code: "this.#keeper.writeSettled(hasDropped);",
    without: "this.#keeper.writeSettled(false);",
    test: "unit/buffer/disk/model.test.ts",
    name: "the same holds for",
  },
  {
    safeguard: "points of a segment that is put back are not lost any more",
    file: "buffer/disk/recovery/reconciling.ts",
    code: "  for (const segment of segments) restoreFound(segment, accounts);\n",
    without: "",
    test: accounts,
    name: "put back",
  },
  {
    safeguard: "the state does not settle a missing segment that is put back",
    file: "buffer/disk/recovery/recovery.ts",
    code: "if (!known || isFoundAgain(state, segment)) continue;",
    without: "if (!known) continue;",
    test: accounts,
    name: "a segment that is put",
  },
  {
    safeguard: "a segment that cannot be read holds what was left in it",
    file: "buffer/disk/segments/segment-opening.ts",
    code: "sealedUpTo(endOfUnreadable(found, limit, options), found, options)",
    without: "sealedUpTo(limit, found, options)",
    test: accounts,
    name: "a compacted segment that",
  },
  {
    safeguard: "an unreadable segment holds back only what may replace points that are asked for",
    file: "buffer/disk/blocks/unread-segments.ts",
    code: "touches(each) && mayHold(each)) ||",
    without: "touches(each)) ||",
    test: "unit/buffer/disk/unreadable.test.ts",
    name: "a segment with only",
  },
  {
    safeguard: "a segment of another buffer is none of this one",
    file: "buffer/disk/segments/segment-finding.ts",
    code: 'if (typeof header !== "object" || header.stream !== stream || !Number',
    without: 'if (typeof header !== "object" || !Number',
    test: "unit/buffer/disk/store.test.ts",
  },
  {
    safeguard: "checking the payloads of sealed segments in an outage",
    file: "buffer/disk/log/scrubber.ts",
    code: '        if (!isPayloadWhole(bytes, at, header, checksum)) return "damaged";\n',
    without: "",
    test: scrub,
  },
  {
    safeguard: "the first loss of a reason is counted",
    file: "buffer/disk/buffer-metrics.ts",
    code: "      this.#before.set(`lost ${reason}`, 0);\n",
    without: "",
    test: "unit/buffer/disk/buffer-metrics.test.ts",
  },
  {
    safeguard: "the state says what is removed with the points that are leased of it",
    file: "buffer/disk/blocks/dropped-blocks.ts",
    code: "      const loss = lossOf(block);\n      removed.lose(block.first, block.end, loss.points, block.reason);\n",
    without: "      const loss = lossOf(block);\n",
    test: "unit/buffer/disk/accounts.test.ts",
    name: "while blocks of it are leased",
  },
];
