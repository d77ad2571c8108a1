// Faults F16 to F27 of the network and the service, each for points and for metadata. No point is lost or discarded, no
// request comes too soon or is too large, and what was held back arrives afterwards.
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { eventually } from "../support/eventually.ts";
import type { Points } from "../support/memory-reader.ts";
import { has } from "../support/platform.ts";
import {
  accepts,
  answers,
  type Behaviour,
  fails,
  refusing,
  ScriptedService,
  says,
} from "../support/scripted-service.ts";
import { closest, type Uploading, uploading } from "../support/uploading.ts";

const insert = "integration.insert";
const save = "integration.saveSignals";
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const mebibyte = 2 ** 20;

/** The points that the service must have in the end. The value is a function of input and time. */
function ticks(count: number, inputs: readonly string[]): Points {
  return Object.fromEntries(
    inputs.map((input, k) => [input, Array.from({ length: count }, (_, i) => [start + i * 1e6, i + k / 10] as const)]),
  );
}

/**
 * Recognises the method of a request by its length: request bodies are resent unchanged, and those of metadata are
 * shorter.
 */
function expectWithinLimits({ departures }: Uploading, service: ScriptedService): void {
  const saves = new Set(service.requests(save).map(({ bytes }) => bytes));
  const inserts = departures.filter(({ bytes }) => !saves.has(bytes));
  expect(closest(inserts)).toBeGreaterThanOrEqual(1_000);
  expect(closest(departures.filter(({ bytes }) => saves.has(bytes)))).toBeGreaterThanOrEqual(1_000);
  for (const { bytes } of inserts) expect(bytes).toBeLessThanOrEqual(8 * mebibyte);
}

/** Answers with these bytes, valid HTTP or not, and closes the connection. */
const raw =
  (text: string): Behaviour =>
  ({ response }) => {
    response.socket?.end(text);
  };
const right = ({ request, accept }: Parameters<Behaviour>[0]) =>
  JSON.stringify({ jsonrpc: "2.0", id: request.id, result: accept() });

/** Writes until the connection closes. */
const endless =
  (status: number): Behaviour =>
  ({ response }) => {
    const chunk = Buffer.alloc(2 ** 16, " ");
    const pump = () => {
      while (!response.destroyed && response.write(chunk));
      if (!response.destroyed) response.once("drain", pump);
    };
    response.writeHead(status);
    pump();
  };

const faults: readonly (readonly [fault: string, name: string, behaviour: Behaviour])[] = [
  ["F16", "a connection that hangs and then closes", ({ response }) => void setTimeout(() => response.destroy(), 30)],
  ["F18", "a closed connection", ({ response }) => void response.socket?.destroy()],
  ["F18", "a reset before anything is stored", ({ response }) => void response.socket?.resetAndDestroy()],
  [
    "F18",
    "a reset after storing, before the answer",
    ({ response, accept }) => {
      accept();
      response.socket?.resetAndDestroy();
    },
  ],
  ["F21", "a page of a captive portal", answers(200, "<html>Please log in</html>", { "content-type": "text/html" })],
  ["F21", "a proxy that wants a password", answers(407)],
  ["F22", "an error of the server", answers(500, "oops")],
  ["F22", "a method that is not implemented", answers(501)],
  [
    "F22",
    "the right answer under a wrong status",
    (exchange) => void exchange.response.writeHead(502).end(right(exchange)),
  ],
  ["F22", "a service that is unavailable", answers(503)],
  ["F22", "unavailable, wait", answers(503, "", { "retry-after": "2" })],
  ["F22", "a gateway's time-out", answers(504, "<html>")],
  ["F22", "a request that took too long", answers(408)],
  ["F22", "a request that came too early", answers(425)],
  ["F22", "an address that is not found", answers(404)],
  ["F22", "a method that is not allowed", answers(405)],
  ["F22", "no content", answers(204)],
  ["F22", "a wrong password", answers(401)],
  ["F22", "no permission", answers(403)],
  ["F22", "too many requests", answers(429)],
  ["F22", "too many requests, wait", answers(429, "", { "retry-after": "5" })],
  [
    "F22",
    "too many requests, wait until yesterday",
    answers(429, "", { "retry-after": "Thu, 01 Jan 2026 00:00:00 GMT" }),
  ],
  ["F22", "too many requests, wait soon", answers(429, "", { "retry-after": "soon" })],
  ["F22", "too many requests, wait less than nothing", answers(429, "", { "retry-after": "-1" })],
  ["F23", "an empty answer", answers(200)],
  ["F23", "half of an answer", raw('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"jsonrpc":"2.0",')],
  [
    "F23",
    "half of a chunked answer",
    raw('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11\r\n{"jsonrpc":"2.0",'),
  ],
  ["F23", "half of an answer that says nothing of its length", raw('HTTP/1.1 200 OK\r\n\r\n{"jsonrpc":"2.0","id":1')],
  ["F23", "two lengths", raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}")],
  ["F23", "30 KB of headers", raw(`HTTP/1.1 200 OK\r\nx: ${"x".repeat(30_000)}\r\ncontent-length: 2\r\n\r\n{}`)],
  ["F23", "no HTTP at all", raw("SSH-2.0-OpenSSH_9.2\r\n")],
  ["F23", "more answer than anybody needs", ({ response }) => void response.end("x".repeat(4 * mebibyte))],
  ["F23", "an answer that never ends", endless(200)],
  ["F23", "an error that never ends", endless(500)],
  [
    "F23",
    "little that becomes much when it is unpacked",
    ({ response }) =>
      void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(Buffer.alloc(16 * mebibyte, " "))),
  ],
  ["F24", "no result", says(() => ({}))],
  ["F24", "a result that is false", says(() => ({ result: false }))],
  ["F24", "a result that is null", says(() => ({ result: null }))],
  ["F24", "a result and an error", says((accept) => ({ result: accept(), error: { code: -32603, message: "but" } }))],
  ["F24", "an answer to another request", says((accept) => ({ id: 7, result: accept() }))],
  ["F24", "an answer with the ID as text", says((accept, { id }) => ({ id: String(id), result: accept() }))],
  ["F24", "an answer with the ID null", says((accept) => ({ id: null, result: accept() }))],
  ["F24", "an answer without an ID", says((accept) => ({ id: undefined, result: accept() }))],
  ["F24", "an answer of another version", says((accept) => ({ jsonrpc: "1.0", result: accept() }))],
  ["F24", "a list of answers", (exchange) => void exchange.response.end(`[${right(exchange)}]`)],
  [
    "F24",
    "two IDs, the right one first",
    (exchange) => void exchange.response.end(`${right(exchange).slice(0, -1)},"id":7}`),
  ],
  [
    "F24",
    "two results, the right one first",
    (exchange) => void exchange.response.end(`${right(exchange).slice(0, -1)},"result":[]}`),
  ],
  ["F24", "an error to another request", says(() => ({ id: 7, error: { code: -32602, message: "no" } }))],
  ["F24", "an error without a number", says(() => ({ error: { message: "no" } }))],
  ["F24", "an error with a number as text", says(() => ({ error: { code: "-32602", message: "no" } }))],
  ["F24", "a request that could not be parsed", fails(-32700)],
  ["F24", "an unknown method", fails(-32601)],
  ["F24", "an internal error", fails(-32603)],
  ["F24", "an error of the server in JSON-RPC", fails(-32000)],
  ["F24", "a conflict", fails(-32009)],
  ["F24", "a request to try again", fails(-32015)],
  ["F24", "no permission in JSON-RPC", fails(-32003)],
  ["F24", "an unknown error", fails(-1)],
  ["F25", "a part that is accepted, without a word which", fails(-32021)],
];

test.concurrent.for(faults)(
  "%s: %s keeps points and metadata, and they arrive afterwards",
  async (fault, { expect }) => {
    const [, , behaviour] = fault;
    await using service = await ScriptedService.open();
    service.otherwise = behaviour;
    await using upload = await uploading({ url: service.url, speed: 500 });
    const described = "described.only" as InputId;
    upload.catalog.describe(described, { engUnit: "V" });
    upload.reader.append(ticks(5, ["a", "b"]));
    await eventually(() => service.requests(insert).length >= 2 && service.requests(save).length >= 2, 20_000);
    expect(upload.reader.settled).toEqual([]);
    // Forbidden metadata is set aside for a minute, and its points are delivered without it.
    expect(upload.catalog.pending.has(described) || upload.catalog.refused.has(described)).toBe(true);
    expect(upload.uploader.status().lastError).toMatchObject({ current: true });
    service.otherwise = accepts;
    await eventually(() => upload.reader.empty && upload.catalog.savedCount === 1, 20_000);
    const points = Object.entries(ticks(5, ["a", "b"]));
    expect(service.stored).toEqual(
      new Map(points.flatMap(([input, of]) => of.map(([at, value]) => [`${input} ${time(at)}`, value]))),
    );
    expect(service.signals.get(described)).toMatchObject({ engUnit: "V" });
    const status = upload.uploader.status();
    expect(status).toMatchObject({
      rejected: 0,
      points: 10,
      signals: { saved: 1, refused: [] },
      lastError: { current: false },
    });
    // After half a minute of server errors the uploader tries a single series first.
    expect([1, 2]).toContain(status.requests.accepted);
    expect(status.parked.refused).toBe(0);
    expectWithinLimits(upload, service);
  },
);

test("F16: a service that is not yet running gets all points once it is", async () => {
  let url = "";
  {
    await using gone = await ScriptedService.open();
    url = gone.url;
  }
  await using upload = await uploading({ url, speed: 500 });
  upload.reader.append(ticks(5, ["a"]));
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 3 && now;
  });
  expect(status).toMatchObject({ state: "unreachable", lastError: { code: "SERVICE_UNREACHABLE", current: true } });
  await using service = await ScriptedService.open(undefined, Number(new URL(url).port));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(5);
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(1_000);
});

test.for([
  ["F18", "before the body", 0],
  ["F18", "in the middle of the body", 20_000],
] as const)("%s: a reset %s keeps the points", async ([, , after]) => {
  await using service = await ScriptedService.open();
  let resets = 0;
  service.atHead = (incoming) => {
    let bytes = 0;
    const reset = () => {
      resets++;
      incoming.socket.resetAndDestroy();
    };
    if (after === 0) reset();
    else
      incoming.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > after) reset();
      });
    incoming.on("error", () => {});
    return true;
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(20_000, ["a"]));
  await eventually(() => resets >= 3);
  expect(upload.reader.settled).toEqual([]);
  service.atHead = undefined;
  await eventually(() => upload.reader.empty);
  expect([service.stored.size, upload.uploader.status().rejected]).toEqual([20_000, 0]);
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(1_000);
});

test("F17: an answer that arrives byte by byte is awaited, and nothing is sent twice meanwhile", async () => {
  await using service = await ScriptedService.open();
  service.script[insert]?.push(async (exchange) => {
    const text = right(exchange);
    exchange.response.writeHead(200, { "content-length": text.length });
    for (const byte of text) {
      exchange.response.write(byte);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    exchange.response.end();
  });
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(5, ["a", "b"]));
  await eventually(() => upload.reader.empty);
  expect([service.requests(insert).length, service.stored.size, service.repeated]).toEqual([1, 10, 0]);
});

test.for([
  ["F19", "that does not exist", `http://${"x".repeat(64)}.invalid/v1`],
  ["F19", "that cannot be written", "http://xn--a/v1"],
])("%s: a name %s keeps the points", async ([, , url]) => {
  await using upload = await uploading({ url: url ?? "", speed: 500 });
  upload.reader.append(ticks(5, ["a"]));
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.requests.failed >= 3 && now;
  });
  expect(status).toMatchObject({ state: "unreachable", lastError: { current: true }, rejected: 0 });
  expect(upload.reader.settled).toEqual([]);
});

test("F19: when a name has an IPv6 address with a closed port, the other address is used", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url.replace("127.0.0.1", "localhost"), speed: 500 });
  upload.reader.append(ticks(5, ["a"]));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(5);
});

test.for([301, 302, 303, 307, 308])(
  "F21: a redirect (%i) is not followed, holds the points and is reported",
  async (status) => {
    await using service = await ScriptedService.open();
    let visits = 0;
    const target = createServer((_request, response) => {
      visits++;
      response.end("{}");
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    const address = target.address();
    const port = typeof address === "object" ? address?.port : 0;
    service.otherwise = answers(status, "", { location: `http://127.0.0.1:${port}/latest/meta-data` });
    await using upload = await uploading({ url: service.url, speed: 500 });
    upload.reader.append(ticks(5, ["a"]));
    await eventually(() => service.requests(insert).length >= 3);
    expect(upload.reader.settled).toEqual([]);
    expect(upload.uploader.status()).toMatchObject({
      state: "holding",
      lastError: { code: "SERVICE_REFUSED", hint: expect.stringContaining("set service.url") },
    });
    service.otherwise = accepts;
    await eventually(() => upload.reader.empty);
    expect([visits, service.stored.size]).toEqual([0, 5]);
    await new Promise((resolve) => target.close(resolve));
  },
);

const retryAfter: readonly (readonly [name: string, value: () => string, leastMs: number])[] = [
  ["seconds", () => "30", 30_000],
  ["a date", () => new Date(Date.now() + 3_600_000).toUTCString(), 600_000],
  ["the end of time", () => "1000000000000", 3_600_000],
];

test.for(retryAfter)("F22: Retry-After as %s is respected, up to an hour", async ([, after, leastMs]) => {
  await using service = await ScriptedService.open();
  service.script[insert]?.push(answers(429, "", { "retry-after": after() }));
  await using upload = await uploading({ url: service.url, speed: 5_000 });
  upload.reader.append(ticks(1, ["a"]));
  await eventually(() => upload.reader.empty);
  expect(upload.departures.length).toBe(2);
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(leastMs);
});

test("F22: a service that finds everything too large is retried, and gets requests of full size afterwards", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = answers(413);
  await using upload = await uploading({ url: service.url, speed: 5_000 });
  upload.reader.append(ticks(64, ["a"]));
  const status = await eventually(() => {
    const now = upload.uploader.status();
    return now.state === "holding" && now;
  });
  expect(status).toMatchObject({
    rejected: 0,
    lastError: { message: "even the smallest request is found too large", hint: expect.stringContaining("413") },
  });
  service.otherwise = accepts;
  await eventually(() => upload.reader.empty);
  upload.reader.append(ticks(1_000, ["b", "c"]));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(2_064);
  expect(service.requests(insert).at(-1)?.bytes).toBeGreaterThan(20_000);
});

test.runIf(has.earlyAnswers)("F23: 413 before the body is read halves the request", async () => {
  await using service = await ScriptedService.open();
  const most = 300_000;
  service.atHead = (incoming, response) => {
    if (Number(incoming.headers["content-length"]) <= most) return false;
    response.writeHead(413, { connection: "close" }).end();
    return true;
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(50_000, ["a", "b"]));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(100_000);
  const tooLarge = upload.departures.filter(({ bytes }) => bytes > most);
  expect(tooLarge.length).toBeGreaterThan(0);
  // The size is halved until it fits. Larger requests are tried again after 1, 2, 4, … accepted requests.
  const halvings = Math.ceil(Math.log2(Math.max(...tooLarge.map(({ bytes }) => bytes)) / most));
  const accepted = upload.departures.length - tooLarge.length;
  expect(tooLarge.length).toBeLessThanOrEqual(halvings + Math.floor(Math.log2(accepted + 1)));
});

test("F17: where long requests are cut off on the way, points and metadata arrive in shorter ones", {
  // Its own limit comes first.
  timeout: 60_000,
}, async () => {
  await using service = await ScriptedService.open();
  const most = 150_000;
  service.atHead = (incoming) => {
    if (Number(incoming.headers["content-length"]) <= most) return false;
    incoming.socket.resetAndDestroy();
    return true;
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  const described = Array.from({ length: 400 }, (_, k) => `described${k}` as InputId);
  for (const input of described) upload.catalog.describe(input, { description: "x".repeat(1_000) });
  upload.reader.append(ticks(20_000, ["a", "b"]));
  await eventually(() => upload.reader.empty && upload.catalog.savedCount === described.length, 20_000);
  expect([service.stored.size, service.signals.size]).toEqual([40_000, described.length]);
  expect(upload.uploader.status()).toMatchObject({ rejected: 0, points: 40_000, signals: { refused: [] } });
});

test("F25: inputs refused in partial answers between failures wait; all others are stored, each once", async () => {
  await using service = await ScriptedService.open();
  let refuses = true;
  const partly = refusing((input) => refuses && Number(input.slice(3)) % 3 === 0);
  service.otherwise = (exchange) => (service.requests(insert).length % 2 === 0 ? answers(503) : partly)(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  const inputs = Array.from({ length: 9 }, (_, k) => `tag${k}`);
  upload.reader.append(ticks(4, inputs));
  await eventually(() => service.stored.size === 24 && upload.reader.leased === 0, 20_000);
  expect(service.repeated).toBe(0);
  expect(upload.uploader.status()).toMatchObject({ rejected: 0, points: 24, parked: { refused: 3 } });
  refuses = false;
  await eventually(() => upload.reader.empty, 20_000);
  expect([service.stored.size, upload.reader.refused]).toEqual([36, 0]);
  expect(closest(upload.departures)).toBeGreaterThanOrEqual(1_000);
});

test("F26: a request stored long after it seemed lost changes nothing", async () => {
  await using service = await ScriptedService.open();
  const late: (() => void)[] = [];
  service.script[insert]?.push(({ response, accept }) => {
    late.push(accept);
    response.socket?.destroy();
  });
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(5, ["a"]));
  await eventually(() => upload.reader.empty);
  upload.reader.append({ a: [[start + 9e6, 99]] });
  await eventually(() => upload.reader.empty);
  const before = new Map(service.stored);
  for (const apply of late) apply();
  expect(service.stored).toEqual(before);
  expect([before.size, service.repeated]).toEqual([6, 5]);
});

function time(micros: number): string {
  return new Date(micros / 1_000).toISOString().replace(".000Z", "Z");
}

test("a failing service is not reported as a fault of URL, proxy or network", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = answers(500, "database is down");
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(5, ["a"]));
  const { lastError } = await eventually(() => {
    const now = upload.uploader.status();
    return now.state === "unreachable" && now;
  });
  expect(lastError).toMatchObject({ message: "HTTP 500: database is down" });
  expect(lastError?.hint).toContain("fails");
});

test("a partial failure that lists refused inputs in another form still settles the inputs reported as stored", async () => {
  await using service = await ScriptedService.open();
  const data = {
    partialResult: { signalsByInput: { a: { id: "s", created: false } } },
    invalidResources: { b: ["no"] },
  };
  service.otherwise = (exchange) =>
    exchange.request.method === insert ? fails(-32021, data)(exchange) : accepts(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(5, ["a", "b"]));
  await eventually(() => upload.uploader.status().points === 5);
});
