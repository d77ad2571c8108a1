import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { nodeDisk } from "../../../../src/buffer/disk/files/disk.ts";
import { append, moment, openStore } from "../../../support/disk-store.ts";
import { has } from "../../../support/platform.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

test("the parent folder is synced after each folder is created", () => {
  using home = temporaryFolder();
  const synced: string[] = [];
  const disk = nodeDisk((folder) => synced.push(folder));

  disk.makeFolder(home.file("data/tagferry/buffer"));

  const made = [home.file("data/tagferry/buffer"), home.file("data/tagferry"), home.file("data")];
  expect(made.map((path) => existsSync(path))).toEqual([true, true, true]);
  expect(synced.toSorted()).toEqual(made.map((path) => dirname(path)).toSorted());
});

test.runIf(has.symbolicLinks)("a symbolic link in place of a file is neither read nor written through", () => {
  using home = temporaryFolder();
  const disk = nodeDisk();
  disk.open(home.file("foreign"), "create").close();
  symlinkSync(home.file("foreign"), home.file("link"));
  symlinkSync(home.file("nowhere"), home.file("dangling"));

  for (const mode of ["read", "write"] as const)
    expect(() => disk.open(home.file("link"), mode)).toThrow(expect.objectContaining({ code: "ELOOP" }));
  for (const name of ["link", "dangling"])
    expect(() => disk.open(home.file(name), "create")).toThrow(expect.objectContaining({ code: "EEXIST" }));
  expect(existsSync(home.file("nowhere"))).toBe(false);
});

test.runIf(has.symbolicLinks)(
  "a segment replaced by a symbolic link is reported and set aside; the target of the link is unchanged",
  () => {
    using home = temporaryFolder();
    const folder = home.file("buffer");
    const { store } = openStore(nodeDisk(), { folder });
    append(store, [["a", 1e6, 1]]);
    store.close(moment(1));
    const [segment = ""] = readdirSync(folder).filter((name) => name.startsWith("seg-"));
    mkdirSync(home.file("elsewhere"));
    renameSync(`${folder}/${segment}`, home.file("elsewhere/file"));
    const before = readFileSync(home.file("elsewhere/file"));
    symlinkSync(home.file("elsewhere/file"), `${folder}/${segment}`);

    const again = openStore(nodeDisk(), { folder });
    again.store.close(moment(2));

    expect(again.notes).toContainEqual(expect.objectContaining({ message: "a segment cannot be read" }));
    expect(readFileSync(home.file("elsewhere/file")).equals(before)).toBe(true);
    expect(lstatSync(`${folder}/quarantine/${segment}`).isSymbolicLink()).toBe(true);
  },
);
