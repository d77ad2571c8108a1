import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { nodeDisk } from "../../../../src/buffer/disk/node-disk.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test("the name of every folder that is made is synced in the folder above it", () => {
  using home = temporaryFolder();
  const synced: string[] = [];
  const disk = nodeDisk((folder) => synced.push(folder));

  disk.makeFolder(home.file("data/tagferry/buffer"));

  const made = [home.file("data/tagferry/buffer"), home.file("data/tagferry"), home.file("data")];
  expect(made.map((path) => existsSync(path))).toEqual([true, true, true]);
  expect(synced.toSorted()).toEqual(made.map((path) => dirname(path)).toSorted());
});
