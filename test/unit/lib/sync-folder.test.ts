// Folders are synced where the platform can do so. Without this, nothing that writes a state file works on Windows.
import { expect, test } from "vitest";
import { canSyncFolders, syncFolder, syncName } from "../../../src/lib/files/atomic-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test.runIf(canSyncFolders()).each(["linux", "darwin"] as const)(
  "on %s a folder is synced, so one that is missing is an error",
  async (platform) => {
    using home = temporaryFolder();
    syncFolder(home.path, platform);
    await syncName(home.file("file"), platform);
    expect(() => syncFolder(home.file("missing"), platform)).toThrow("ENOENT");
    await expect(syncName(home.file("missing/file"), platform)).rejects.toThrow("ENOENT");
  },
);

test("on Windows, which refuses to sync a folder, none is opened", async () => {
  using home = temporaryFolder();
  expect(() => syncFolder(home.file("missing"), "win32")).not.toThrow();
  await expect(syncName(home.file("missing/file"), "win32")).resolves.toBeUndefined();
});
