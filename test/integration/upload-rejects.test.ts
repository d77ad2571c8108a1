// A refused point counts as settled once it is in the rejects file.
import { mkdirSync, readFileSync, rmdirSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { MemoryReader } from "../support/memory-reader.ts";
import { accepts, answers, fails, refusing, ScriptedService } from "../support/scripted-service.ts";
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

test("while more than 10,000 refused points cannot be written down, nothing is sent, and everything arrives afterwards", async () => {
  await using service = await ScriptedService.open();
  using folder = temporaryFolder();
  const file = folder.file("upload/rejects.ndjson");
  mkdirSync(file, { recursive: true });
  await using upload = await uploading({ url: service.url, speed: 200, folder: folder.path });
  const unsendable = 10_500;
  upload.reader.append({ a: Array.from({ length: unsendable }, (_, i) => [1e15 + i, Number.NaN] as const) });
  const held = await eventually(() => {
    const now = upload.uploader.status();
    return now.state === "holding" && now;
  });
  expect(held).toMatchObject({
    unkept: unsendable,
    lastError: { code: "BUFFER_UNAVAILABLE", message: expect.stringContaining("cannot be written to disk") },
  });
  upload.reader.append({ b: [[1e15, 1]] });
  const { clock } = upload.runtime;
  const later = clock.monotonic() + 20_000;
  await eventually(() => clock.monotonic() > later);
  expect(service.stored.size).toBe(0);
  rmdirSync(file);
  await eventually(() => upload.reader.empty);
  expect(upload.uploader.status()).toMatchObject({ unkept: 0, rejected: unsendable });
  expect(service.stored.size).toBe(1);
});

test("where new points are refused again and again, each bad one is found, and all others arrive", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => {
    const values = Object.values(exchange.request.params.data?.series ?? {}).flat();
    return (values.includes(13) ? answers(400) : accepts)(exchange);
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  let rounds = 0;
  let seen = -1;
  // The search makes progress while further points are refused: new ones for each request, however fast the machine is.
  await eventually(() => {
    if (service.seen.length > seen) {
      seen = service.seen.length;
      const time = 1e15 + rounds++ * 1e6;
      const points = Array.from({ length: 50 }, (_, k) => [`tag${k}`, [[time, k === 3 ? 13 : 100 + k]]] as const);
      upload.reader.append(Object.fromEntries(points));
    }
    return upload.uploader.status().rejected >= 3;
  });
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(49 * rounds);
  expect(upload.uploader.status()).toMatchObject({ rejected: rounds, unkept: 0 });
});

test("the search for a refused point goes on in smaller requests where the service finds them too large", async () => {
  await using service = await ScriptedService.open();
  let hasRefused = false;
  service.otherwise = (exchange) => {
    const values = Object.values(exchange.request.params.data?.series ?? {}).flat();
    if (hasRefused && values.length > 150) return answers(413)(exchange);
    if (!values.includes(13)) return accepts(exchange);
    hasRefused = true;
    return fails(-32602)(exchange);
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  const values = Array.from({ length: 800 }, (_, i) => [1e15 + i * 1e6, i === 555 ? 13 : 1_000 + i] as const);
  upload.reader.append({ a: values.slice(0, 500), b: values.slice(500) });
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(799);
  expect(upload.uploader.status()).toMatchObject({ rejected: 1, unkept: 0 });
});

test("where the service refuses more inputs than are set aside, the others arrive, and all do once it accepts them", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = refusing((input) => input.startsWith("bad"));
  await using upload = await uploading({ url: service.url, speed: 5_000 });
  const times = [1e15, 1e15 + 1e6, 1e15 + 2e6];
  const points = (prefix: string, count: number, from: number) =>
    Object.fromEntries(
      Array.from({ length: count }, (_, i) => [`${prefix}${i}`, times.map((time) => [time + from, i] as const)]),
    );
  upload.reader.append({ ...points("bad", 1_500, 0), ...points("good", 100, 0) });
  const stored = () => [...service.stored.keys()].filter((key) => key.startsWith("good")).length;
  await eventually(() => stored() === 300);
  await eventually(() => upload.uploader.status().lastError?.message.includes("refuses too many inputs"));
  upload.reader.append({ ...points("bad", 1_500, 1e9), ...points("good", 100, 1e9) });
  await eventually(() => stored() === 600);
  let requests = 0;
  service.otherwise = (exchange) => {
    requests++;
    return accepts(exchange);
  };
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(9_600);
  // At one request a second, a request for each of the 1,500 inputs would take half an hour.
  expect(requests).toBeLessThan(200);
  expect(upload.uploader.status().rejected).toBe(0);
});
