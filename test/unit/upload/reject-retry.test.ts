// A retry of refused points that meets the end of its uploader: the files of the next one must stay as it writes them.
import { readdirSync } from "node:fs";
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { RejectFiles } from "../../../src/upload/rejects/reject-files.ts";
import { RejectRetry } from "../../../src/upload/rejects/reject-retry.ts";
import { Rejects } from "../../../src/upload/rejects/rejects.ts";
import { testRuntime } from "../../support/runtime.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

async function oneRefused(folder: TemporaryFolder) {
  const runtime = testRuntime();
  const rejects = await Rejects.open(folder.file("rejects.ndjson"), runtime);
  await rejects.add([{ input: "a" as InputId, time: 1e15, value: 1, code: -32602, reason: "no" }], () => {});
  return { rejects, retry: new RejectRetry(new RejectFiles(folder.path), rejects, runtime.log) };
}

test("a retry that begins while the uploader ends takes no points out of the files afterwards", async () => {
  using folder = temporaryFolder();
  const { rejects, retry } = await oneRefused(folder);
  const busy = Promise.withResolvers<void>();
  const before = rejects.alone(() => busy.promise);

  const started = retry.start();
  const refused = expect(started).rejects.toThrow("the uploader stops");
  const ended = retry.end();
  busy.resolve();
  await Promise.all([before, refused, ended]);

  expect(readdirSync(folder.path)).toEqual(["rejects.ndjson"]);
});

test("the end of the uploader waits until a retry has taken its points out, and puts them back", async () => {
  using folder = temporaryFolder();
  const { retry } = await oneRefused(folder);

  const started = retry.start();
  await Promise.resolve().then(() => {}); // its turn has come, and it reads the files
  await retry.end();

  expect(await started).toMatchObject({ running: true, points: 1 });
  expect(retry.progress).toMatchObject({ running: false, points: 1, accepted: 0 });
  expect(readdirSync(folder.path)).toEqual(["rejects.1.ndjson"]);
});
