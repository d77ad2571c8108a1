// A refused point counts as settled once it is in the rejects file.
import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { MemoryReader } from "../support/memory-reader.ts";
import { accepts, fails, ScriptedService } from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { uploading } from "../support/uploading.ts";

test("a refused point that cannot be written to the rejects file stays in the buffer, and the others are delivered", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => {
    const values = Object.values(exchange.request.params.data?.series ?? {}).flat();
    return (values.includes(13) ? fails(-32602) : accepts)(exchange);
  };
  using folder = temporaryFolder();
  const file = folder.file("upload/rejects.ndjson");
  mkdirSync(file, { recursive: true });
  {
    await using upload = await uploading({ url: service.url, speed: 200, folder: folder.path });
    upload.reader.append({
      a: [
        [1e15, 1],
        [1e15 + 1, 13],
        [1e15 + 2, 3],
      ],
    });
    await eventually(() => upload.uploader.status().unkept === 1 && service.stored.size === 2);
    upload.reader.append({ b: [[1e15, 1]] });
    await eventually(() => service.stored.size === 3);
    expect([upload.reader.empty, upload.uploader.status().rejected]).toEqual([false, 0]);
    rmdirSync(file);
    await eventually(() => upload.reader.empty);
    expect(upload.uploader.status()).toMatchObject({ unkept: 0, rejected: 1 });
    expect(upload.reader.settled.reduce((sum, { refused = 0 }) => sum + refused, 0)).toBe(1);
  }
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ input: "a", value: 13 });
});

test("a point that can never be sent stays in the buffer until it is in the rejects file", async () => {
  await using service = await ScriptedService.open();
  using folder = temporaryFolder();
  const file = folder.file("upload/rejects.ndjson");
  mkdirSync(file, { recursive: true });
  const reader = new MemoryReader();
  reader.append({ a: [[1e15, Number.NaN]], b: [[1e15, 1]] });
  reader.append({ c: [[1e15, Number.NaN]] });
  {
    await using upload = await uploading({ url: service.url, speed: 200, folder: folder.path, reader });
    await eventually(() => upload.uploader.status().unkept === 2 && reader.settled.length === 1);
    // Everything that can be delivered is delivered. The points that cannot be sent stay leased, so they survive a
    // crash.
    expect([reader.settled.flatMap(({ inputs }) => inputs), reader.leased, upload.uploader.status().rejected]).toEqual([
      ["b"],
      2,
      0,
    ]);
  }
  rmdirSync(file);
  await using upload = await uploading({ url: service.url, speed: 200, folder: folder.path, reader });
  await eventually(() => reader.empty);
  expect(upload.uploader.status()).toMatchObject({ unkept: 0, rejected: 2 });
  expect(reader.refused).toBe(2);
  const lines = readFileSync(file, "utf8").trim().split("\n");
  expect(new Set(lines.map((line) => JSON.parse(line).input))).toEqual(new Set(["a", "c"]));
});
