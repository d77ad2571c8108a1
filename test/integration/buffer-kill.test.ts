// The buffer on a real disk, in processes that are killed at any moment.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { expectToSurviveKills, startAppending } from "../support/kill-cycles.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const cycles = 6;
const never = new AbortController().signal;

test(`no acknowledged point is lost by kill -9, ${cycles} times in a row`, { timeout: 90_000 }, async () => {
  using home = temporaryFolder();

  await expectToSurviveKills(home.file("buffer"), cycles, 11);
});

test("a second process on the same folder is refused within a second and writes nothing", async () => {
  using home = temporaryFolder();
  const directory = home.file("buffer");
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  await using _buffer = await openDiskBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  const content = () =>
    readdirSync(directory)
      .toSorted()
      .map((name) => [name, name === "LOCK" ? "" : readFileSync(join(directory, name), "hex")]);
  const before = content();

  const { child, lines } = startAppending(directory, 0);
  await once(child, "close");

  expect(lines).toEqual(["failed DATA_DIR_IN_USE"]);
  expect(content()).toEqual(before);
});
