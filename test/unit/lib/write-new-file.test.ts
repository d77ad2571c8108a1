import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { writeNewFile } from "../../../src/lib/files/atomic-file.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("a file that cannot be written to its end is removed", async () => {
  using home = temporaryFolder();
  const file = home.file("file");
  async function* cut(): AsyncGenerator<string> {
    yield "the first part";
    expect(existsSync(file)).toBe(true);
    throw new Error("no space left");
  }
  await expect(writeNewFile(file, cut(), 0o600)).rejects.toThrow("no space left");
  expect(existsSync(file)).toBe(false);
});

test("a file that is there already stays as it is", async () => {
  using home = temporaryFolder();
  const file = home.file("file");
  writeFileSync(file, "of another program");
  await expect(writeNewFile(file, "new", 0o600)).rejects.toMatchObject({ code: "EEXIST" });
  expect(readFileSync(file, "utf8")).toBe("of another program");
});
