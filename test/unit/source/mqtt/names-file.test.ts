import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openNamesFile } from "../../../../src/source/mqtt/reading/name-tables.ts";
import { testRuntime } from "../../../support/runtime.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const url = "mqtt://broker.local";

test("after several saves in a row the last one is read back, and no other file remains", async () => {
  using folder = temporaryFolder();
  const { log, lines } = testRuntime();
  const file = openNamesFile(join(folder.path, "state"), url, log);
  for (let i = 0; i < 20; i++) file.save({ table: { 101: `speed ${i}` } });
  await file.written();

  expect(await openNamesFile(join(folder.path, "state"), url, log).load()).toEqual({ table: { 101: "speed 19" } });
  expect(await openNamesFile(join(folder.path, "state"), "mqtt://other", log).load()).toEqual({});
  expect(readdirSync(join(folder.path, "state"))).toHaveLength(1);
  expect(lines).toEqual([]);
});

test.each(["", "{", '{"table":[1]}', "null"])(
  "a file with %j in it costs a warning, and the names are learnt again",
  async (text) => {
    using folder = temporaryFolder();
    const { log, lines } = testRuntime();
    const file = openNamesFile(folder.path, url, log);
    file.save({ table: { 101: "speed" } });
    await file.written();
    for (const name of readdirSync(folder.path)) writeFileSync(folder.file(name), text);

    expect(await file.load()).toEqual({});
    expect(lines.map(({ level }) => level)).toEqual(["warn"]);
  },
);

test("an unwritable folder causes a warning", async () => {
  const { log, lines } = testRuntime();
  const file = openNamesFile("/dev/null/state", url, log);
  file.save({});
  await file.written();
  expect(lines).toMatchObject([{ level: "warn", message: "cannot store the names of devices" }]);
});
