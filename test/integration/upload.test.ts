// The uploader with a misbehaving service: no point is lost, nothing blocks delivery, and no rate limit is exceeded.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { TimeWriter } from "../../src/upload/series/number-text.ts";
import { eventually } from "../support/eventually.ts";
import { MemoryReader, type Points } from "../support/memory-reader.ts";
import {
  accepts,
  answers,
  type Behaviour,
  fails,
  refusing,
  ScriptedService,
  says,
} from "../support/scripted-service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { closest, uploading } from "../support/uploading.ts";

const insert = "integration.insert";
const save = "integration.saveSignals";
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;

/** One point of each input per second. */
function ticks(count: number, inputs: readonly string[], from = 0): Points {
  return Object.fromEntries(
    inputs.map((input, k) => [
      input,
      Array.from({ length: count }, (_, i) => [start + (from + i) * 1e6, i + k / 10] as const),
    ]),
  );
}

test("points arrive unchanged, and their blocks are settled", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url });
  upload.reader.append({
    "a.b": [
      [start, 1.5],
      [start + 123, -2],
    ],
    "c/d": [[start, 0]],
  });
  await eventually(() => upload.reader.empty);
  expect(service.stored).toEqual(
    new Map([
      ["a.b 2026-01-01T00:00:00Z", 1.5],
      ["a.b 2026-01-01T00:00:00.000123Z", -2],
      ["c/d 2026-01-01T00:00:00Z", 0],
    ]),
  );
  const [seen] = service.requests(insert);
  expect(seen?.headers).toMatchObject({
    "content-type": "application/json",
    "x-api-version": "1.1beta1",
    authorization: `Basic ${Buffer.from("c8ktonqsahsmemfs7lv0:pass:word").toString("base64")}`,
    "user-agent": "tagferry/test (gw1)",
  });
  expect(seen?.request.params.integration).toBe("c8ktonqsahsmemfs7lv0");
  expect(upload.uploader.status()).toMatchObject({ points: 3, requests: { accepted: 1, failed: 0 }, inFlight: 0 });
  expect(upload.runtime.metric("upload_points_per_request")).toBe(3);
  expect(upload.runtime.metric("upload_bytes_per_request")).toBe(seen?.bytes);
});

test("requests of a method start at least a second apart, also right after the start, and never overlap", async () => {
  await using service = await ScriptedService.open();
  // The first answer is slow, so that the next request could start too early.
  service.script[insert]?.push(async ({ response, request, accept }) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    response.end(JSON.stringify({ jsonrpc: "2.0", id: request.id, result: accept() }));
  });
  const opened = performance.now();
  await using upload = await uploading({ url: service.url, speed: 1 });
  for (let i = 0; i < 4; i++) {
    upload.reader.append(ticks(10, [`tag${i}`]));
    await eventually(() => upload.reader.empty);
  }
  expect(service.seen[0]!.start - opened).toBeGreaterThanOrEqual(1_000);
  expect(service.requests(insert).length).toBe(4);
  expect(upload.departures.length).toBe(4);
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(1_000);
  expect(service.mostOpen).toBe(1);
});

test("a crash loop does not exceed the rate", async () => {
  await using service = await ScriptedService.open();
  const reader = new MemoryReader();
  const speed = 20;
  for (let i = 0; i < 10; i++) {
    reader.append({ a: [[start + i, i]] });
    const seen = service.seen.length;
    await using upload = await uploading({ url: service.url, speed, reader });
    await eventually(() => service.seen.length > seen);
    await upload.stop();
  }
  expect(service.requests(insert).length).toBe(10);
  expect(service.closest(insert) * speed).toBeGreaterThanOrEqual(1_000);
});

test("with wrong credentials all points are kept, the error is reported, and delivery is retried", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = answers(401, "who are you?");
  await using upload = await uploading({ url: service.url, speed: 200 });
  upload.reader.append(ticks(3, ["a"]));
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.state === "holding" && now.requests.failed > 3 && now;
  });
  expect(status.lastError).toMatchObject({ code: "SERVICE_REFUSED", current: true, message: "HTTP 401: who are you?" });
  expect(status.lastError?.hint).toContain("service.auth");
  service.otherwise = accepts;
  await eventually(() => upload.reader.empty);
  expect(upload.uploader.status().lastError).toMatchObject({ current: false });
});

test("after a service found a request too large it gets smaller ones, also after a restart", async () => {
  await using service = await ScriptedService.open();
  using folder = temporaryFolder();
  const most = 20_000;
  service.otherwise = (exchange) => (JSON.stringify(exchange.request).length > most ? answers(413) : accepts)(exchange);
  for (const wave of [0, 1]) {
    const before = service.requests(insert).length;
    await using upload = await uploading({ url: service.url, speed: 200, folder: folder.path });
    upload.reader.append(
      ticks(
        100,
        Array.from({ length: 100 }, (_, i) => `line${wave}.tag${i}`),
      ),
    );
    await eventually(() => upload.reader.empty);
    expect(service.stored.size).toBe(10_000 * (wave + 1));
    const sizes = service.requests(insert).map(({ bytes }) => bytes);
    if (wave === 1) expect(sizes[before]).toBeLessThanOrEqual(most);
    // Three halvings until a request is small enough; then larger ones are tried at growing intervals.
    expect(sizes.filter((bytes) => bytes > most).length).toBeLessThanOrEqual(3 + 3 * (wave + 1));
  }
});

test("a service that accepts large requests again gets full size after a few requests", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) =>
    (JSON.stringify(exchange.request).length > 3_000 ? answers(413) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 200, service: { limits: { maxRequest: "64KiB" } } });
  const inputs = Array.from({ length: 50 }, (_, i) => `tag${i}`);
  upload.reader.append(ticks(1_000, inputs));
  await eventually(() => service.stored.size > 1_000);
  service.otherwise = accepts;
  const small = service.requests(insert).length;
  await eventually(() => upload.reader.empty);
  expect([service.stored.size, service.repeated]).toEqual([50_000, 0]);
  const sizes = service.requests(insert).map(({ bytes }) => bytes);
  expect(Math.max(...sizes.slice(small, small + 20))).toBeGreaterThan(50_000);
});

test("while inputs are refused for minutes the others are stored once each, and full requests follow once they are accepted", async () => {
  await using service = await ScriptedService.open();
  const bad = new Set(["tag1", "tag3"]);
  service.otherwise = refusing((input) => bad.has(input));
  await using upload = await uploading({ url: service.url, speed: 500 });
  const { reader, uploader, runtime } = upload;
  const inputs = Array.from({ length: 15 }, (_, k) => `tag${k}`);
  const good = inputs.filter((input) => !bad.has(input));
  const began = runtime.clock.monotonic();
  let rows = 0;
  // For minutes, new points arrive every few seconds, and those of the accepted inputs are stored soon.
  while (runtime.clock.monotonic() - began < 240_000) {
    reader.append(ticks(10, inputs, rows));
    rows += 10;
    await eventually(() => storedOf(service, good) === good.length * rows && reader.leased === 0);
  }
  expect(uploader.status().parked.refused).toBe(2);
  expect(storedOf(service, inputs)).toBe(13 * rows);
  const before = service.requests(insert).length;
  bad.clear();
  await eventually(() => reader.empty, 20_000);
  expect(storedOf(service, inputs)).toBe(15 * rows);
  expect(service.repeated).toBe(0);
  // Each is tried with its ten oldest points first; then one request carries all its remaining points.
  const points = service
    .requests(insert)
    .slice(before)
    .map(({ request }) => Object.values(request.params.data?.series ?? {}).flat().length);
  expect(Math.max(...points)).toBeGreaterThanOrEqual(rows - 10);
  expect(points.length).toBeLessThanOrEqual(8);
});

function storedOf(service: ScriptedService, inputs: readonly string[]): number {
  const wanted = new Set(inputs);
  return [...service.stored.keys()].filter((key) => wanted.has(key.slice(0, key.indexOf(" ")))).length;
}

/** Refuses a whole request if any value in it is above 1,000. */
const strict: Behaviour = (exchange) => {
  const { series = {} } = exchange.request.params.data ?? {};
  const bad = Object.values(series).some((values) => values.some((value) => value !== null && value > 1_000));
  return (bad ? fails(-32602) : accepts)(exchange);
};

test("one bad point among 100,000 is found in at most 35 requests, and the others are stored", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = strict;
  await using upload = await uploading({ url: service.url, speed: 500 });
  const points = Object.fromEntries(
    Array.from({ length: 100 }, (_, k) => [
      `line1.tag${k}`,
      Array.from({ length: 1_000 }, (_, i) => [start + i * 1e6, k === 37 && i === 411 ? 5_000 : i / 10] as const),
    ]),
  );
  upload.reader.append(points);
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(99_999);
  expect(service.requests(insert).length).toBeLessThanOrEqual(36);
  expect(upload.uploader.status()).toMatchObject({ rejected: 1 });
  expect(upload.reader.refused).toBe(1);
  const [line] = readFileSync(join(upload.folder, "upload/rejects.ndjson"), "utf8").trim().split("\n");
  expect(JSON.parse(line!)).toMatchObject({
    input: "line1.tag37",
    time: "2026-01-01T00:06:51Z",
    value: 5_000,
    code: -32602,
  });
});

test("while a bad point is searched for, others do not wait for it", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url, speed: 200 });
  service.otherwise = (exchange) => {
    if (service.requests(insert).length === 2) upload.reader.append(ticks(3, ["good"]));
    return strict(exchange);
  };
  upload.reader.append({
    bad: Array.from({ length: 500 }, (_, i) => [start + i * 1e6, i === 250 ? 9_999 : 1] as const),
  });
  await eventually(() => upload.reader.empty);
  const carried = service.requests(insert).map(({ request }) => "good" in (request.params.data?.series ?? {}));
  expect(carried.indexOf(true)).toBeLessThan(5);
  expect(carried.slice(carried.indexOf(true)).length).toBeGreaterThan(3);
});

test("an input named by the service is excluded at once", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => {
    const series = exchange.request.params.data?.series ?? {};
    return (
      "bad.one" in series ? fails(-32602, { trace: "t1", params: { "data.series.bad.one.0": ["too high"] } }) : accepts
    )(exchange);
  };
  await using upload = await uploading({ url: service.url, speed: 200 });
  upload.reader.append({
    ...ticks(
      1,
      Array.from({ length: 500 }, (_, i) => `tag${i}`),
    ),
    "bad.one": [[start, 1]],
  });
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(500);
  expect(service.requests(insert).length).toBe(3);
});

test("a service that refuses everything stops the bisection before points are dropped", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url, speed: 2_000 });
  let untilHeld = 0;
  service.otherwise = (exchange) => {
    if (upload.uploader.status().state !== "holding") untilHeld++;
    return fails(-32602)(exchange);
  };
  upload.reader.append(
    ticks(
      1_000,
      Array.from({ length: 20 }, (_, i) => `tag${i}`),
    ),
  );
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.state === "holding" && now;
  });
  expect(status.lastError).toMatchObject({ code: "SERVICE_REJECTED", current: true });
  expect(status.rejected).toBeLessThan(20);
  expect(untilHeld).toBe(25);
  service.otherwise = accepts;
  await eventually(() => upload.reader.empty, 20_000);
  expect(service.stored.size + upload.uploader.status().rejected).toBe(20_000);
});

test("inputs that −32021 names wait in the buffer, all others are settled at once and never sent again", async () => {
  await using service = await ScriptedService.open();
  const bad = new Set(["tag1", "tag3"]);
  service.otherwise = refusing((input) => bad.has(input));
  await using upload = await uploading({ url: service.url, speed: 200 });
  const { reader, uploader } = upload;
  const inputs = Array.from({ length: 15 }, (_, k) => `tag${k}`);
  for (let i = 0; i < 20; i++) reader.append(ticks(2, inputs, i * 2));
  await eventually(() => service.stored.size === 13 * 40 && reader.leased === 0);
  const settled = reader.settled.flatMap((each) => each.inputs);
  expect([settled.length, settled.filter((input) => bad.has(input)), reader.refused]).toEqual([13 * 20, [], 0]);
  expect(uploader.status()).toMatchObject({
    rejected: 0,
    parked: {
      refused: 2,
      unconfirmed: 0,
      first: [{ input: "tag1", why: "refused", reason: "no such unit (-32021)" }, {}],
    },
  });
  // New points are sent in requests without the refused inputs, except for the retries.
  reader.append(ticks(2, inputs, 40));
  await eventually(() => service.stored.size === 13 * 42);
  bad.clear();
  await eventually(() => reader.empty, 20_000);
  expect([service.stored.size, uploader.status().parked.first]).toEqual([15 * 42, []]);
  expect(service.repeated).toBeLessThanOrEqual(2);
  const perInput = inputs.map(
    (input) => [...service.stored.keys()].filter((key) => key.startsWith(`${input} `)).length,
  );
  expect(perInput).toEqual(inputs.map(() => 42));
});

test("points refused one by one with −32021 go to the rejects, once others of their input were accepted", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = refusing((_, values) => values.some((value) => value === 13));
  await using upload = await uploading({ url: service.url, speed: 500 });
  const values = [1, 2, 13, 4, 5, 13, 7, 8];
  upload.reader.append({ a: values.map((value, i) => [start + i * 1e6, value]), b: [[start, 1]] });
  await eventually(() => upload.reader.empty, 20_000);
  expect(service.stored.size).toBe(7);
  expect([upload.reader.refused, upload.uploader.status().rejected]).toEqual([2, 2]);
  const lines = readFileSync(join(upload.folder, "upload/rejects.ndjson"), "utf8").trim().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { input: "a", value: 13, reason: "no such unit (-32021)" },
    { input: "a", value: 13 },
  ]);
});

test("a single point of an input named by −32021 is not dropped: the error does not concern the point", async () => {
  await using service = await ScriptedService.open();
  let refuses = true;
  service.otherwise = refusing(() => refuses);
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => service.requests(insert).length >= 6);
  expect(upload.uploader.status()).toMatchObject({ rejected: 0, parked: { refused: 1 } });
  expect(upload.reader.settled).toEqual([]);
  refuses = false;
  await eventually(() => upload.reader.empty, 20_000);
  expect([service.stored.size, upload.reader.refused]).toEqual([1, 0]);
});

test("a result without a series leaves its points unsettled", async () => {
  await using service = await ScriptedService.open();
  service.script[insert]?.push(
    says((accept, { params }) => {
      const { b: _left, ...series } = params.data?.series ?? {};
      void accept;
      return {
        result: service.store({
          jsonrpc: "2.0",
          id: 1,
          method: insert,
          params: { ...params, data: { times: params.data?.times ?? [], series } },
        }),
      };
    }),
  );
  await using upload = await uploading({ url: service.url, speed: 200 });
  upload.reader.append(ticks(2, ["a", "b"]));
  await eventually(() => upload.reader.empty);
  expect([service.stored.size, service.repeated]).toEqual([4, 0]);
});

test("a result without any input settles nothing: it is retried and reported with a remedy", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = says(() => ({ result: {} }));
  await using upload = await uploading({ url: service.url, speed: 1_000 });
  upload.reader.append(ticks(5, ["a", "b"]));
  await eventually(() => service.requests(insert).length >= 5);
  expect(upload.reader.settled).toEqual([]);
  expect(upload.uploader.status()).toMatchObject({
    state: "holding",
    points: 0,
    lastError: {
      code: "SERVICE_UNCONFIRMED",
      message: "a request was accepted without naming any input",
      current: true,
    },
  });
  service.otherwise = accepts;
  await eventually(() => upload.reader.empty, 20_000);
  expect([service.stored.size, service.repeated]).toEqual([10, 0]);
});

test("with confirmation: status a result without any input counts as delivered, one with other inputs does not", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = says(() => ({ result: {} }));
  await using upload = await uploading({ url: service.url, speed: 200, service: { confirmation: "status" } });
  upload.reader.append(ticks(5, ["a", "b"]));
  await eventually(() => upload.reader.empty);
  service.otherwise = says(() => ({ result: { signalsByInput: { other: { id: "c8ktonqsahsmemfs7lv0" } } } }));
  const before = service.requests(insert).length;
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => service.requests(insert).length > before + 1);
  expect(upload.reader.empty).toBe(false);
});

test("with confirmation: status a result that lists an input without its ID does not deliver the others", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = says(() => ({ result: { signalsByInput: { a: { created: true } } } }));
  await using upload = await uploading({ url: service.url, speed: 200, service: { confirmation: "status" } });
  upload.reader.append(ticks(1, ["a", "b"]));
  await eventually(() => service.requests(insert).length > 1);
  expect(upload.reader.empty).toBe(false);
});

test("an input missing from answers is sent three times, then waits in the buffer while all others continue", async () => {
  await using service = await ScriptedService.open();
  let silent = true;
  service.otherwise = says((accept) => {
    // the shape of this service's answer
    const { signalsByInput } = accept() as { signalsByInput: Record<string, unknown> };
    const { b: _left, ...others } = signalsByInput;
    return { result: { signalsByInput: silent ? others : signalsByInput } };
  });
  await using upload = await uploading({ url: service.url, speed: 500 });
  for (let i = 0; i < 12; i++) {
    upload.reader.append(ticks(1, ["a", "b"], i));
    await eventually(() => upload.reader.settled.filter(({ inputs }) => inputs.includes("a" as InputId)).length > i);
  }
  expect(upload.reader.settled.flatMap(({ inputs }) => inputs)).not.toContain("b");
  await eventually(() => upload.uploader.status().parked.unconfirmed === 1);
  silent = false;
  await eventually(() => upload.reader.empty, 25_000);
  expect(service.stored.size).toBe(24);
});

test("metadata are saved with all attributes before the first points go out, once, and again when they change", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url, speed: 50 });
  const input = "boiler.temp" as InputId;
  upload.catalog.describe(input, { engUnit: "°C", labels: { hall: ["1"] } });
  upload.reader.append(ticks(2, [input]));
  await eventually(() => upload.reader.empty);
  expect(service.seen.map(({ request }) => request.method)).toEqual([save, insert]);
  expect(service.signals.get(input)).toEqual({
    annotations: {},
    name: "boiler.temp",
    type: "numeric",
    description: "",
    labels: { hall: ["1"] },
    engUnit: "°C",
    enumValues: {},
    sourceType: "measurement",
    sampleInterval: null,
    gapDetection: null,
  });
  upload.catalog.describe(input, { labels: { hall: ["1"] }, engUnit: "°C" });
  upload.catalog.describe(input, { labels: { hall: ["2"] }, engUnit: "°C" });
  await eventually(() => service.requests(save).length === 2);
  await eventually(() => upload.catalog.pending.size === 0);
  expect(service.signals.get(input)).toMatchObject({ labels: { hall: ["2"] } });
  expect(upload.uploader.status().signals).toEqual({ known: 1, pending: 0, saved: 1, refused: [] });
});

test("metadata saved before a restart are not saved again", async () => {
  await using service = await ScriptedService.open();
  using folder = temporaryFolder();
  {
    await using first = await uploading({ url: service.url, speed: 50, folder: folder.path });
    first.catalog.describe("a" as InputId, { engUnit: "V" });
    await eventually(() => first.catalog.pending.size === 0);
  }
  await using second = await uploading({ url: service.url, speed: 50, folder: folder.path });
  second.catalog.describe("a" as InputId, { engUnit: "V" });
  expect(second.catalog.pending.size).toBe(0);
  second.catalog.describe("a" as InputId, { engUnit: "mV" });
  await eventually(() => second.catalog.pending.size === 0);
  expect(service.requests(save).length).toBe(2);
});

test("a signal whose metadata the service refuses is shown; its points and the other signals are not held up", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => {
    const { inputs } = exchange.request.params;
    return (inputs && "tag7" in inputs ? fails(-32001) : accepts)(exchange);
  };
  await using upload = await uploading({ url: service.url, speed: 200 });
  const inputs = Array.from({ length: 20 }, (_, i) => `tag${i}`);
  for (const input of inputs) upload.catalog.describe(input as InputId, { engUnit: "V" });
  upload.reader.append(ticks(1, inputs));
  await eventually(() => upload.reader.empty);
  await eventually(() => upload.catalog.pending.size === 0);
  expect(service.signals.size).toBe(19);
  expect(service.stored.size).toBe(20);
  expect(upload.uploader.status().signals.refused).toEqual([{ input: "tag7", reason: "forbidden (-32001)" }]);
});

test("a service that cannot save metadata still gets points", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => (exchange.request.method === save ? fails(-32601) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 200 });
  upload.catalog.describe("a" as InputId, {});
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => upload.reader.empty);
  expect(upload.uploader.status()).toMatchObject({
    state: "unreachable",
    lastError: { current: true },
    signals: { pending: 1 },
  });
});

test("when the agent stops, the request in flight is awaited and the rest released", async () => {
  await using service = await ScriptedService.open();
  const gate = Promise.withResolvers<void>();
  service.script[insert]?.push(async (exchange) => {
    await gate.promise;
    await accepts(exchange);
  });
  await using upload = await uploading({ url: service.url, speed: 5 });
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => service.requests(insert).length === 1);
  upload.reader.append(ticks(1, ["b"]));
  const stopped = upload.stop();
  gate.resolve();
  await stopped;
  expect([upload.reader.settled.length, upload.reader.waiting, upload.reader.leased]).toEqual([1, 1, 0]);
});

test("when the agent stops, a service that does not answer is awaited for 5 s at most", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = () => {};
  await using upload = await uploading({ url: service.url, speed: 20 });
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => service.requests(insert).length === 1);
  const begun = performance.now();
  await upload.stop();
  expect((performance.now() - begun) * 20).toBeGreaterThanOrEqual(5_000);
  expect([upload.reader.settled.length, upload.reader.waiting]).toEqual([0, 1]);
});

test("after an outage the newest points are sent first, and all others follow", async () => {
  await using service = await ScriptedService.open();
  const reader = new MemoryReader();
  service.otherwise = answers(503);
  await using upload = await uploading({
    url: service.url,
    speed: 50,
    reader,
    service: { limits: { maxRequest: "64KiB" } },
  });
  const now = currentTick();
  // These points are fresh when the outage begins and old when it ends.
  for (let i = 0; i < 20; i++) reader.append(scattered(now + i, 1, 100));
  await eventually(() => upload.uploader.status().state === "unreachable");
  const down = upload.runtime.clock.monotonic();
  await eventually(() => upload.runtime.clock.monotonic() - down > 20_000 && service.requests(insert).length > 3);
  reader.append({ fresh: [[start + now * 1e6 + 7, 1]] });
  const before = service.requests(insert).length;
  service.otherwise = accepts;
  await eventually(() => reader.empty);
  expect(service.stored.size).toBe(20 * 100 + 1);
  const stored = service.requests(insert).findIndex(({ request }) => "fresh" in (request.params.data?.series ?? {}));
  expect(stored - before).toBeLessThanOrEqual(3);
  expect(service.requests(insert).length - before).toBeGreaterThan(5);
});

test("fresh points of polled tags are stored within two requests, however long the backlog", async () => {
  await using service = await ScriptedService.open();
  const reader = new MemoryReader();
  const tags = Array.from({ length: 50 }, (_, i) => `line1.tag${i}`);
  for (let i = 0; i < 60; i++) reader.append(rows(i * 100, 100, tags));
  const fresh: { readonly tick: number; readonly before: number; readonly waiting: number }[] = [];
  service.otherwise = (exchange) => {
    const before = service.requests(insert).length;
    if (before > 1 && before < 7) {
      const tick = currentTick() + before;
      reader.append(rows(tick, 1, tags));
      fresh.push({ tick, before, waiting: reader.waiting });
    }
    return accepts(exchange);
  };
  await using _upload = await uploading({
    url: service.url,
    speed: 20,
    reader,
    service: { limits: { maxRequest: "128KiB" } },
  });
  await eventually(() => reader.empty && fresh.length === 5, 20_000);
  for (const { tick, before, waiting } of fresh) {
    const stored = service
      .requests(insert)
      .findIndex(({ request }) => request.params.data?.times.includes(time(tick)) ?? false);
    expect(stored - before).toBeLessThan(2);
    expect(stored).toBeGreaterThanOrEqual(before);
    expect(waiting).toBeGreaterThan(1);
  }
  expect(service.stored.size).toBe(60 * 100 * 50 + 5 * 50);
  const nulls = service
    .requests(insert)
    .flatMap(({ request }) => Object.values(request.params.data?.series ?? {}))
    .flat()
    .filter((value) => value === null).length;
  expect(nulls).toBe(0);
});

test("fresh points of unrelated tags are stored within maxLag while a backlog drains, which gets its share", async () => {
  await using service = await ScriptedService.open();
  const reader = new MemoryReader();
  for (let i = 0; i < 200; i++) reader.append(scattered(i * 10, 10, 100));
  const fresh: { readonly times: readonly string[]; readonly before: number }[] = [];
  service.otherwise = (exchange) => {
    const before = service.requests(insert).length;
    if (before % 2 === 1 && fresh.length < 6) {
      const points = scattered(currentTick() + before, 1, 100);
      reader.append(points);
      fresh.push({ times: Object.values(points).map(([first]) => iso(first![0])), before });
    }
    return accepts(exchange);
  };
  await using _upload = await uploading({
    url: service.url,
    speed: 20,
    reader,
    service: { limits: { maxRequest: "128KiB" } },
  });
  await eventually(() => reader.empty && fresh.length === 6, 25_000);
  const carried = service.requests(insert).map(({ request }) => new Set(request.params.data?.times));
  for (const { times, before } of fresh) {
    const last = Math.max(...times.map((each) => carried.findIndex((of) => of.has(each))));
    // One request a second, hence at most 10 s.
    expect(last - before).toBeLessThanOrEqual(10);
    expect(last).toBeGreaterThanOrEqual(before);
    // Otherwise no backlog was left and the test proves nothing.
    expect(carried.length - last).toBeGreaterThan(3);
  }
});

/** The index of the current tick. */
function currentTick(): number {
  return Math.floor((Date.now() * 1_000 - start) / 1e6);
}

/** `count` ticks from `first` on, at the same times for all tags. */
function rows(first: number, count: number, tags: readonly string[]): Points {
  const points = Array.from({ length: count }, (_, i) => [start + (first + i) * 1e6, (first + i) % 1_000] as const);
  return Object.fromEntries(tags.map((tag) => [tag, points]));
}

/** As many points, but no two have the same time. */
function scattered(first: number, count: number, tags: number): Points {
  return Object.fromEntries(
    Array.from({ length: tags }, (_, k) => [
      `tag${k}`,
      Array.from({ length: count }, (__, i) => [start + (first + i) * 1e6 + k * 1_000 + 1, k] as const),
    ]),
  );
}

function time(tick: number): string {
  return iso(start + tick * 1e6);
}

function iso(micros: number): string {
  const bytes = Buffer.alloc(40);
  return bytes.toString("latin1", 0, new TimeWriter().write(bytes, 0, micros));
}
