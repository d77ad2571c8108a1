import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { namesFile } from "../../../../src/source/mqtt/reading/name-tables.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const url = "mqtt://broker.local";

test("after several saves in a row the last one is read back, and no other file remains", async () => {
  using folder = temporaryFolder();
  const { log, lines } = testRuntime();
  const file = namesFile(join(folder.path, "state"), url, log);
  for (let i = 0; i < 20; i++) void file.save({ table: { 101: `speed ${i}` } });
  await file.saved();

  expect(await namesFile(join(folder.path, "state"), url, log).load()).toEqual({ table: { 101: "speed 19" } });
  expect(await namesFile(join(folder.path, "state"), "mqtt://other", log).load()).toBeUndefined();
  expect(readdirSync(join(folder.path, "state"))).toHaveLength(1);
  expect(lines).toEqual([]);
});

test.each(["", "{", '{"table":[1]}', "null"])(
  "a file with %j in it costs a warning, and the names are learnt again",
  async (text) => {
    using folder = temporaryFolder();
    const { log, lines } = testRuntime();
    const file = namesFile(folder.path, url, log);
    void file.save({ table: { 101: "speed" } });
    await file.saved();
    for (const name of readdirSync(folder.path)) writeFileSync(folder.file(name), text);

    expect(await file.load()).toBeUndefined();
    expect(lines.map(({ level }) => level)).toEqual(["warn"]);
  },
);

test("an unwritable folder causes a warning", async () => {
  const { log, lines } = testRuntime();
  const file = namesFile(join(import.meta.filename, "state"), url, log);
  void file.save({});
  await file.saved();
  expect(lines).toMatchObject([{ level: "warn", message: "cannot store the names of devices" }]);
});
