import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Secret } from "../../src/core/secret.ts";
import { has } from "../support/platform.ts";
import { integration, password, testService } from "../support/service.ts";
import { serviceProcess } from "../support/service-process.ts";
import type { TemporaryFolder } from "../support/temporary-folder.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const integrations = [
  { id: integration, password: new Secret(password), clientId: "me", clientSecret: new Secret("s3cret"), grants: [] },
];
const data = { times: ["2026-01-01T00:00:00Z"], series: { a: [1] } };

let umask: number;
let folder: TemporaryFolder;
beforeEach(() => {
  folder = temporaryFolder();
  // As if a user with a permissive umask had created the folder.
  mkdirSync(folder.file("data"));
  chmodSync(folder.file("data"), 0o777);
  umask = process.umask(0);
});
afterEach(() => {
  process.umask(umask);
  folder[Symbol.dispose]();
});

const modes = () =>
  Object.fromEntries(
    readdirSync(folder.file("data")).map((name) => [
      name,
      (statSync(folder.file(`data/${name}`)).mode & 0o777).toString(8),
    ]),
  );
const all = { lock: "600", "service.sqlite": "600", "token.key": "600" };
const whileOpen = { "lock-journal": "600", "service.sqlite-wal": "600", "service.sqlite-shm": "600" };

test.runIf(has.permissionBits)(
  "in a world-writable folder every file is accessible to the service's user only",
  async () => {
    await using service = await testService({ integrations, data: folder.file("data") });
    await service.call("integration.insert", { integration, data });

    expect(modes()).toEqual({ ...all, ...whileOpen });
  },
);

test.runIf(has.permissionBits)(
  "files readable by others since an earlier start become private at the next start",
  async () => {
    {
      await using service = await testService({ integrations, data: folder.file("data") });
      await service.call("integration.insert", { integration, data });
    }
    for (const name of Object.keys(all)) chmodSync(folder.file(`data/${name}`), 0o666);
    {
      await using service = await testService({ integrations, data: folder.file("data") });
      // An orderly stop deletes the write-ahead log, and the next start creates a new one.
      await service.call("integration.insert", { integration, data });

      expect(modes()).toEqual({ ...all, ...whileOpen });
    }
    expect(modes()).toEqual(all);
  },
);

test.runIf(has.permissionBits)("a world-readable write-ahead log of a killed service becomes private", async () => {
  {
    await using service = await serviceProcess(folder.file("data"));
    await service.kill();
  }
  for (const name of readdirSync(folder.file("data"))) chmodSync(folder.file(`data/${name}`), 0o644);
  expect(existsSync(folder.file("data/service.sqlite-wal"))).toBe(true);
  await using _service = await testService({ integrations, data: folder.file("data") });

  expect(new Set(Object.values(modes()))).toEqual(new Set(["600"]));
});

test.runIf(has.permissionBits)("a damaged token key is replaced by one that others cannot read", async () => {
  writeFileSync(folder.file("data/token.key"), "short", { mode: 0o666 });
  await using _service = await testService({ integrations, data: folder.file("data") });

  expect(modes()).toMatchObject(all);
});

test("a file that is no database ends the start with its path and the reason, and is not changed", async () => {
  const path = folder.file("data/service.sqlite");
  writeFileSync(path, "This file is something else.".repeat(100));
  await expect(testService({ integrations, data: folder.file("data") })).rejects.toMatchObject({
    code: "BUFFER_UNAVAILABLE",
    message: `cannot open ${path}: file is not a database`,
  });
  expect(readFileSync(path, "utf8")).toMatch(/^This file is something else/);
});

test.runIf(has.linuxFiles)("a folder below /proc ends the start", async () => {
  await expect(testService({ integrations, data: "/proc/tagferry/data" })).rejects.toMatchObject({
    code: "DATA_DIR_UNWRITABLE",
    message: expect.stringContaining("/proc/tagferry"),
  });
});

test("a folder that cannot be created ends the start with the reason and what to do", async () => {
  writeFileSync(folder.file("plain"), "");
  const data = folder.file("plain/data");
  await expect(testService({ integrations, data })).rejects.toMatchObject({
    code: "DATA_DIR_UNWRITABLE",
    message: expect.stringMatching(`^cannot create the folder ${data.replaceAll("\\", "\\\\")}: .*ENOTDIR`),
    hint: expect.stringContaining(folder.file("plain")),
  });
});
