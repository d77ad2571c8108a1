// A retry of refused points that meets the end of its uploader: the files of the next one must stay as it writes them.
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { RejectFiles, type RejectLine } from "../../../src/upload/rejects/reject-files.ts";
import { type RefusedInputs, rejectRetry } from "../../../src/upload/rejects/reject-retry.ts";
import { openRejects } from "../../../src/upload/rejects/rejects.ts";
import { eventually } from "../../support/eventually.ts";
import { MemoryReader } from "../../support/memory-reader.ts";
import { testRuntime } from "../../support/runtime.ts";
import { type TemporaryFolder, temporaryFolder } from "../../support/temporary-folder.ts";

/** Reasons of inputs that the service refuses at present. */
const accepting: RefusedInputs = { reasonOf: () => undefined, hurry: () => {} };

async function oneRefused(folder: TemporaryFolder, inputs = accepting) {
  const runtime = testRuntime();
  const rejects = await openRejects(folder.file("rejects.ndjson"), runtime);
  await rejects.add([{ input: "a" as InputId, time: 1e15, value: 1, code: -32602, reason: "no" }], () => {});
  return { rejects, retry: rejectRetry(new RejectFiles(folder.path), rejects, inputs, runtime.log) };
}

async function linesOf(folder: TemporaryFolder): Promise<readonly (RejectLine | undefined)[]> {
  const lines: (RejectLine | undefined)[] = [];
  for await (const line of new RejectFiles(folder.path).lines()) lines.push(line);
  return lines;
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

test("a point that is refused again while others of its input are undecided is put back once", async () => {
  using folder = temporaryFolder();
  const { rejects, retry } = await oneRefused(folder);
  const again = { input: "a" as InputId, time: 1e15, value: 1, code: -32602, reason: "still no" };
  await rejects.add([{ ...again, time: 2e15, reason: "no" }], () => {});
  await using reader = retry.reader(new MemoryReader());
  await retry.start();
  await reader.take("backlog", { wait: false, maxPoints: 100 }, new AbortController().signal);
  await rejects.add([again], () => {});
  await retry.end();

  expect(rejects.count).toBe(2);
  const lines = await linesOf(folder);
  expect(lines.map((line) => line?.reason)).toEqual(["no", "still no"]);
});

test("a point that was refused again while the retry runs counts once", async () => {
  using folder = temporaryFolder();
  const { rejects, retry } = await oneRefused(folder);
  const again = { input: "a" as InputId, time: 1e15, value: 1, code: -32602, reason: "still no" };
  await rejects.add([{ ...again, input: "b" as InputId, reason: "no" }], () => {});
  await using reader = retry.reader(new MemoryReader());
  await retry.start();
  const { signal } = new AbortController();
  const block = await reader.take("backlog", { wait: false, maxPoints: 100, inputs: [again.input] }, signal);
  await rejects.add([again], () => {});
  await reader.settle([{ block: block!.id, inputs: [again.input], refused: 1 }]);

  expect([retry.progress?.running, retry.count]).toEqual([true, 2]);
  await retry.end();
  expect(retry.count).toBe(2);
});

test("a retry ends once the service has refused every input that is left, not because it did before", async () => {
  using folder = temporaryFolder();
  const hurried: InputId[] = [];
  const { rejects, retry } = await oneRefused(folder, {
    reasonOf: () => "not permitted",
    hurry: (inputs) => void hurried.push(...inputs),
  });
  await using reader = retry.reader(new MemoryReader());
  const { signal } = new AbortController();
  const input = "a" as InputId;
  const others = () => reader.take("backlog", { wait: false, maxPoints: 100, except: [input] }, signal);
  await retry.start();
  expect([await others(), retry.progress?.running, hurried]).toEqual([undefined, true, [input]]);

  const sent = await reader.take("backlog", { wait: false, maxPoints: 100, inputs: [input] }, signal);
  expect(sent).toBeDefined();
  expect([await others(), retry.progress?.running]).toEqual([undefined, true]);
  reader.release([sent!.id]);
  await others();
  await eventually(() => retry.progress?.running === false);

  expect(retry.progress).toMatchObject({ running: false, held: 1, heldReason: "not permitted" });
  expect(rejects.count).toBe(1);
  const lines = await linesOf(folder);
  expect(lines).toMatchObject([{ input, value: 1, code: -32021, reason: "not permitted" }]);
});

test("a retry that was killed at any step leaves each refused point once", async () => {
  using folder = temporaryFolder();
  const { rejects } = await oneRefused(folder);
  const point = (time: number, reason: string) => ({ input: "a" as InputId, time, value: 1, code: -32602, reason });
  await rejects.add([point(2e15, "no"), { ...point(2 ** 60, "no time"), code: undefined }], () => {});
  const files = new RejectFiles(folder.path);
  await files.takeOut();
  await rejects.add([point(1e15, "still no")], () => {});
  // Killed while the others are put back: the last line is cut off.
  const [, second = "", third = ""] = readFileSync(folder.file("rejects.retry.ndjson"), "utf8").split("\n");
  appendFileSync(folder.file("rejects.1.ndjson"), `${third}\n${second.slice(0, 20)}`);

  await files.recover();

  const lines = await linesOf(folder);
  expect(lines.flatMap((line) => line?.reason ?? [])).toEqual(["no time", "no", "still no"]);
  expect(readdirSync(folder.path)).toEqual(["rejects.1.ndjson", "rejects.ndjson"]);
  expect(readFileSync(folder.file("rejects.ndjson"), "utf8")).toContain("still no");
});
