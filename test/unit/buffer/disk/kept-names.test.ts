// The times of inputs with `sameTime: keep` are known after a power cut.
import { expect, test } from "vitest";
import { crc32c } from "../../../../src/buffer/disk/crc32c.ts";
import type { Disk } from "../../../../src/buffer/disk/disk.ts";
import { InputTable } from "../../../../src/buffer/disk/input-table.ts";
import { KeptFile } from "../../../../src/buffer/disk/kept-file.ts";
import { KeptTimes } from "../../../../src/buffer/disk/kept-times.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const folder = "/buffer";

test("an input is named on disk before its first points are, also where the power fails then", () => {
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  const before = open(disk);
  before.kept.place(before.inputs.numberOf("a" as InputId), 100, Number.NEGATIVE_INFINITY);
  before.file.nameNew(0);

  const after = open(disk.afterPowerCut(() => false));
  after.file.restore([], undefined as never); // nothing but segments is looked up in it

  const input = after.inputs.numberOf("a" as InputId);
  expect(after.kept.has(input)).toBe(true);
  expect(after.kept.place(input, 100, 100)).toBe(101);
});

function open(disk: Disk) {
  const inputs = new InputTable();
  const kept = new KeptTimes();
  const file = new KeptFile({ disk, folder, checksum: crc32c, note: () => {}, stream: "1", inputs, kept });
  return { inputs, kept, file };
}
