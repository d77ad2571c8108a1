// Safeguards of the buffer against damage and foreign files, and the order of its steps.
import type { Ablation } from "./ablation.ts";

const states = "unit/buffer/disk/crash-states.test.ts";

export const bufferDamageAblations: readonly Ablation[] = [
  // Checksums and the salt.
  {
    safeguard: "checking the checksum of a payload",
    file: "buffer/disk/format/record.ts",
    code: "end <= bytes.length && crc32(bytes, start, end) === header.payloadChecksum",
    without: "end <= bytes.length",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "checking the checksum of a record's header",
    file: "buffer/disk/format/record.ts",
    code: "  if (view.getUint32(at + 52, true) !== crc32(bytes, at, at + 52)) return undefined;\n",
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "checking the checksum of a segment's header",
    file: "buffer/disk/format/segment-file.ts",
    code: '  if (view.getUint32(4_092, true) !== crc32(bytes, 0, 4_092)) return "damaged";\n',
    without: "",
    test: "unit/buffer/disk/bit-flips.test.ts",
  },
  {
    safeguard: "checking the checksum of the state",
    file: "buffer/disk/counters/state-file.ts",
    code: '  if (view.getUint32(20, true) !== crc32(bytes, headerBytes, end)) return "damaged";\n',
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "checking the checksum of FORMAT",
    file: "buffer/disk/format/segment-file.ts",
    code: ' || match[4] !== crc32Text(match[1] ?? "")',
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "checking the salt of a segment",
    file: "buffer/disk/format/record.ts",
    code: "  if (salt !== undefined && echo !== salt) return undefined;\n",
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "a record that holds other points than its header says counts as damaged",
    file: "buffer/disk/blocks/block-cut.ts",
    code: '    if (seen !== to - from) throw new RangeError("other points than the header says");\n',
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
    name: "has other points than its header says",
  },
  {
    safeguard: "truncating the whole of a write with holes",
    file: "buffer/disk/format/segment-file.ts",
    code: "      index.cut(lastGroup, options.first);\n",
    without: "",
    test: "unit/buffer/disk/damage.test.ts",
    name: "a partly written record",
  },
  {
    safeguard: "counting a damaged record of a write as part of that write",
    file: "buffer/disk/format/segment-file.ts",
    code: "    lastGroup = at - header.groupOffset;\n",
    without: "    if (isPayloadWhole(bytes, at, header)) lastGroup = at - header.groupOffset;\n",
    test: "unit/buffer/disk/damage.test.ts",
  },
  {
    safeguard: "checking sealed segments during an outage",
    file: "buffer/disk/log/store.ts",
    code: "      scrub(now);\n",
    without: "",
    test: "unit/buffer/disk/scrub.test.ts",
  },
  // What counts as lost.
  {
    safeguard: "dropping the oldest segment of a full buffer even if it is leased",
    file: "buffer/disk/log/retention.ts",
    code: "({ sealed, unsettledPoints }) => sealed && unsettledPoints > 0",
    without: "({ sealed, unsettledPoints, blocksOut }) => sealed && blocksOut === 0 && unsettledPoints > 0",
    test: "unit/buffer/disk/overflow.test.ts",
  },
  {
    safeguard: "counting settled points of a dropped segment as delivered",
    file: "buffer/disk/blocks/lease-table.ts",
    code: "return this.dropped.settle(block, inputs, refused);",
    without: "return;",
    test: "unit/buffer/disk/overflow.test.ts",
  },
  {
    safeguard: "recording leased points of dropped segments in the state",
    file: "buffer/disk/log/retention.ts",
    code: "...leases.dropped.state() };",
    without: "leased: [], removed: counters.removed.list() };",
    test: "unit/buffer/disk/overflow.test.ts",
  },
  {
    safeguard: "limiting settled ranges to the end of the segment",
    file: "buffer/disk/counters/coverage.ts",
    code: "new RangeSet(bounds).within(first, end)",
    without: "new RangeSet(bounds)",
    test: "unit/buffer/disk/delivery-state.test.ts",
  },
  {
    safeguard: "accepting a file without a header only if its records fit",
    file: "buffer/disk/segments/segment-opening.ts",
    code: "fits && !isCopy && sequences.length > 0",
    without: "sequences.length >= 0",
    test: "unit/buffer/disk/strangers.test.ts",
  },
  {
    safeguard: "counting a copied segment once",
    file: "buffer/disk/segments/segment-finding.ts",
    code: "    unique.set(key, segment);",
    without: "    unique.set(name, segment);",
    test: "unit/buffer/disk/strangers.test.ts",
  },
  {
    safeguard: "excluding leased points from the damage count",
    file: "buffer/disk/blocks/segment-losses.ts",
    code: " && !isLeased(segment, from, to),",
    without: ",",
    test: "unit/buffer/disk/scrub.test.ts",
  },
  // The order of operations.
  {
    safeguard: "writing the state before settled segments are removed",
    file: "buffer/disk/log/retention.ts",
    code: "    try {\n      write(now);\n    } catch (error) {",
    without: "    remove();\n    try {\n      write(now);\n    } catch (error) {",
    test: states,
  },
  {
    safeguard: "writing the state before a cold segment replaces the hot one",
    file: "buffer/disk/log/background-work.ts",
    code: '    if (!checkpoints.persist(now)) throw new Error("the state could not be written");\n',
    without: "",
    test: states,
  },
  {
    safeguard: "a new salt for a cold segment",
    file: "buffer/disk/log/background-work.ts",
    code: "const salt = random32();",
    without: "const { salt } = segment.header;",
    test: states,
  },
];
