// The lock of a data directory, whatever has become of its file.
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { lockFolder } from "../../../../src/buffer/disk/lock.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test.each([
  ["zeros", "\0".repeat(4_096)],
  ["a few bytes", "abc"],
  ["bytes of another file", "x".repeat(5_000)],
])("a LOCK that %s were written over still locks, one owner at a time", (_, content) => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("LOCK"), content);
  for (let owner = 0; owner < 2; owner++) {
    using _lock = lockFolder(folder.path);
    expect(() => lockFolder(folder.path)).toThrow("is in use by another process");
  }
});

test("locking takes not a byte of the disk: a full one is opened, too", () => {
  using folder = temporaryFolder();
  using _lock = lockFolder(folder.path);
  expect(readdirSync(folder.path)).toEqual(["LOCK"]);
  expect(statSync(folder.file("LOCK")).size).toBe(0);
});
