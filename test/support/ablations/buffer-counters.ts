// Safeguards of the buffer's counters: which files, states and losses belong to it, and which points a full buffer
// drops.
import type { Ablation } from "./ablation.ts";

const counters = "unit/buffer/disk/point-counters.test.ts";
const overflow = "unit/buffer/disk/overflow.test.ts";
const scrub = "unit/buffer/disk/scrub.test.ts";

export const bufferAccountAblations: readonly Ablation[] = [
  {
    safeguard: "marking a point that is not later than its input's mark as late",
    file: "buffer/disk/segments/late-points.ts",
    code: "if (time > mark && time > this.floor) {",
    without: "if (true) {",
    test: "unit/buffer/disk/input-marks.test.ts",
  },
  {
    safeguard: "dropping only duplicates of the newest value",
    file: "buffer/disk/segments/late-points.ts",
    code: "if (Object.is(this.#values[input], value)) continue;",
    without: "continue;",
    test: "unit/buffer/disk/input-marks.test.ts",
  },
  {
    safeguard: "counting leased points of a dropped segment as lost only when they are released",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "    for (const [id, lease] of blocks)\n      this.dropped.add(id,",
    without: "    for (const [id, lease] of new Map<number, Lease>())\n      this.dropped.add(id,",
    test: overflow,
  },
  {
    safeguard: "counting released points of a dropped segment as lost",
    file: "buffer/disk/blocks/lease.ts",
    code: "    this.#counters.losses.add(block.reason, loss);\n",
    without: "",
    test: overflow,
    name: "a segment with leased",
  },
  {
    safeguard: "syncing a settlement of points of a dropped segment",
    file: "buffer/disk/log/store.ts",
    code: "checkpoints.writeSettled(hasDropped);",
    without: "checkpoints.writeSettled(false);",
    test: "unit/buffer/disk/model.test.ts",
    name: "the same holds for",
  },
  {
    safeguard: "removing points of a restored segment from the losses",
    file: "buffer/disk/recovery/recovery.ts",
    code: "  for (const segment of segments) restoreFound(segment, counters);\n",
    without: "",
    test: counters,
    name: "put back",
  },
  {
    safeguard: "ignoring settled ranges of a restored segment that was missing",
    file: "buffer/disk/recovery/recovery.ts",
    code: "if (!known || isFoundAgain(state, segment)) continue;",
    without: "if (!known) continue;",
    test: counters,
    name: "a segment that is put",
  },
  {
    safeguard: "counting the points of an unreadable segment as stored",
    file: "buffer/disk/segments/segment-opening.ts",
    code: "sealedUpTo(endOfUnreadable(found, limit, options), found, options)",
    without: "sealedUpTo(limit, found, options)",
    test: counters,
    name: "a compacted segment that",
  },
  {
    safeguard: "limiting the effect of an unreadable segment to the requested points",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "touches(each) && mayHold(each)) ||",
    without: "touches(each)) ||",
    test: "unit/buffer/disk/unreadable.test.ts",
    name: "a segment with only",
  },
  {
    safeguard: "ignoring a segment of another buffer",
    file: "buffer/disk/segments/segment-finding.ts",
    code: 'if (typeof header !== "object" || header.stream !== stream || !Number',
    without: 'if (typeof header !== "object" || !Number',
    test: "unit/buffer/disk/store.test.ts",
  },
  {
    safeguard: "checking the payloads of sealed segments during an outage",
    file: "buffer/disk/log/background-work.ts",
    code: '        if (!isPayloadWhole(bytes, at, header)) return "damaged";\n',
    without: "",
    test: scrub,
  },
  {
    safeguard: "counting the first loss of each reason",
    file: "buffer/disk/disk-buffer.ts",
    code: "      this.#before.set(`lost ${reason}`, 0);\n",
    without: "",
    test: "unit/buffer/disk/buffer-metrics.test.ts",
  },
  {
    safeguard: "recording the leased points of a removed segment in the state",
    file: "buffer/disk/blocks/lease.ts",
    code: "      const loss = lossOf(block);\n      removed.lose(block.first, block.end, loss.points, block.reason);\n",
    without: "      const loss = lossOf(block);\n",
    test: "unit/buffer/disk/point-counters.test.ts",
    name: "while blocks of it are leased",
  },
];
