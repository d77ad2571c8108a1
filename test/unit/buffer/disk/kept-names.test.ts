// The times of inputs with `sameTime: keep` are known after a power cut.
import { expect, test } from "vitest";
import type { Disk } from "../../../../src/buffer/disk/files/disk.ts";
import { InputTable } from "../../../../src/buffer/disk/format/input-table.ts";
import { KeptTimes, keptFile } from "../../../../src/buffer/disk/segments/kept-times.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";

const folder = "/buffer";

test("an input's name is on disk before its first points, also after a power cut", () => {
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  const before = open(disk);
  before.kept.place(before.inputs.numberOf("a" as InputId), 100, Number.NEGATIVE_INFINITY);
  before.file.nameNew(0);

  const after = open(disk.afterPowerCut(() => false));
  after.file.restore([], undefined as never); // it is used only to look up segments

  const input = after.inputs.numberOf("a" as InputId);
  expect(after.kept.has(input)).toBe(true);
  expect(after.kept.place(input, 100, 100)).toBe(101);
});

test("each further input's name is on disk as well, also after a power cut, and an unfinished name costs no other", () => {
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  const before = open(disk);
  const name = (input: string) => {
    before.kept.place(before.inputs.numberOf(input as InputId), 100, Number.NEGATIVE_INFINITY);
    before.file.nameNew(0);
  };
  name("a");
  name("b");
  disk.fault = (call) => {
    if (call === "sync") throw failure("EIO", "sync");
    return undefined;
  };
  expect(() => name("a much longer name, of which parts are left")).toThrow("EIO");

  const named = (at: MemoryDisk) => {
    const { kept, inputs, file } = open(at);
    file.restore([], undefined as never); // it is used only to look up segments
    return ["a", "b", "c"].filter((input) => kept.has(inputs.numberOf(input as InputId)));
  };
  expect(named(disk.afterPowerCut(() => false))).toEqual(["a", "b"]);
  disk.fault = () => undefined;
  name("c");
  expect(named(disk.afterPowerCut(() => false))).toEqual(["a", "b", "c"]);
});

test("a name that follows a failed sync of the folder is on disk with all before it", () => {
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  const { kept, inputs, file } = open(disk);
  const name = (input: string) => {
    kept.place(inputs.numberOf(input as InputId), 100, Number.NEGATIVE_INFINITY);
    file.nameNew(0);
  };
  for (const input of ["a", "b", "c"]) name(input);
  disk.fault = (call, path) => {
    if (call === "syncFolder") throw failure("EIO", path);
    return undefined;
  };
  file.sealing(10);
  disk.fault = () => undefined;
  name("d");

  const after = open(disk.afterKill());
  after.file.restore([], undefined as never); // it is used only to look up segments
  const isNamed = (input: string) => after.kept.has(after.inputs.numberOf(input as InputId));
  expect(["a", "b", "c", "d"].filter(isNamed)).toEqual(["a", "b", "c", "d"]);
});

test("writing an input's name takes no more bytes when there are many inputs", () => {
  const disk = new MemoryDisk();
  disk.makeFolder(folder);
  const { kept, inputs, file } = open(disk);
  const watched = watchWrites(disk);
  const bytesFor = (count: number, first: number) => {
    watched.bytes = 0;
    for (let i = first; i < first + count; i++) {
      kept.place(inputs.numberOf(`i${i}` as InputId), 100, Number.NEGATIVE_INFINITY);
      file.nameNew(0);
    }
    return watched.bytes;
  };
  const few = bytesFor(100, 1_000);

  expect(bytesFor(100, 2_000)).toBeLessThan(2 * few);
});

/** Counts the bytes written. */
function watchWrites(disk: MemoryDisk): { bytes: number } {
  const watched = { bytes: 0 };
  const open = disk.open.bind(disk);
  disk.open = (path, mode) => {
    const file = open(path, mode);
    return {
      ...file,
      write: (bytes, position) => {
        watched.bytes += bytes.length;
        return file.write(bytes, position);
      },
    };
  };
  return watched;
}

function open(disk: Disk) {
  const inputs = new InputTable();
  const kept = new KeptTimes();
  const file = keptFile({ disk, folder, note: () => {}, stream: "1", inputs, kept });
  return { inputs, kept, file };
}
