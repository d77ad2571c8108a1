import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { countRejects, RejectFiles } from "../../../src/upload/rejects/reject-files.ts";

const line = (input: string, second: number, reason: string, code?: number) =>
  `${JSON.stringify({ at: "2026-03-01T08:00:00Z", input, time: `2026-03-01T08:00:0${second}Z`, value: 1, code, reason })}\n`;

async function filesWith(newer: string, older = "") {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tagferry-rejects-"));
  parts.defer(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, "rejects.ndjson"), newer);
  if (older !== "") await writeFile(join(folder, "rejects.1.ndjson"), older);
  const owned = parts.move();
  return { files: new RejectFiles(folder), [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

test("points are counted by reason, whatever trace ID the answer had, most points first", async () => {
  const text =
    line("a", 1, "too old", 400) +
    line("b", 3, "out of range, trace 1f-2", 422) +
    line("b", 2, "out of range, trace 9a-7", 422) +
    "no JSON\n";
  await using folder = await filesWith(text);
  expect(await countRejects(folder.files.lines())).toEqual({
    points: 3,
    unreadable: 1,
    reasons: [
      {
        code: 422,
        reason: "out of range",
        points: 2,
        inputs: new Map([["b", 2]]),
        earliest: "2026-03-01T08:00:02Z",
        latest: "2026-03-01T08:00:03Z",
      },
      expect.objectContaining({ code: 400, reason: "too old", points: 1 }),
    ],
  });
});

test("of long files only the latest lines are read, and no partial one", async () => {
  const many = Array.from({ length: 200 }, (_, i) => line(`tag${i}`, i % 10, "refused", 400)).join("");
  await using folder = await filesWith(many, many);
  const size = line("tag100", 0, "refused", 400).length;
  const { points, unreadable, reasons } = await countRejects(folder.files.latest(size * 20 + size));
  expect(unreadable).toBe(0);
  expect(points).toBe(20);
  expect([...(reasons[0]?.inputs.keys() ?? [])]).toContain("tag199");
  expect((await countRejects(folder.files.latest(2 ** 20))).points).toBe(400);
});
