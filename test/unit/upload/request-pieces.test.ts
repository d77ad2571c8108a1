// A request is written piece by piece into one buffer, while it is sent.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Series } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { RequestBody } from "../../../src/core/sink.ts";
import { sliceWork } from "../../../src/lib/flow/in-slices.ts";
import { openHttpPost } from "../../../src/upload/client/http-post.ts";
import { FrameWriter, firstRequestId } from "../../../src/upload/packing/frame.ts";
import { eventually } from "../../support/eventually.ts";
import { frameWritten } from "../../support/insert-contract.ts";
import { packingEnvelope, planOf, textOf, windowOf } from "../../support/packing.ts";
import { runs } from "../../support/property.ts";
import { ManualClock, seeded } from "../../support/runtime.ts";

const { signal } = new AbortController();

/** A tag with a value in each of `rows` rows and further ones with a few values, so that pieces end in runs of nulls. */
function sparse(seed: number, rows: number, tags: number): Series[] {
  const random = seeded(seed);
  const digits = 10 ** Math.floor(random() * 7);
  const value = () => Math.round(random() * 100 * digits) / digits;
  const at = (row: number) => 1e15 + row * 1_234;
  return Array.from({ length: tags }, (_, tag) => {
    const share = tag === 0 ? 1 : random() ** 4;
    const times = Array.from({ length: rows }, (_, row) => at(row)).filter(() => random() < share);
    return {
      input: `tag${tag}${"x".repeat(Math.floor(random() * 120))}` as InputId,
      times: Float64Array.from(times),
      values: Float64Array.from(times, value),
    };
  }).filter(({ times }) => times.length > 0);
}

test("the pieces of a request are its text, wherever they end, and a socket asks to wait after each but the last", () => {
  const shape = fc.record({
    seed: fc.nat(),
    rows: fc.integer({ min: 1, max: 40_000 }),
    tags: fc.integer({ min: 1, max: 12 }),
  });
  fc.assert(
    fc.property(shape, ({ seed, rows, tags }) => {
      const series = sparse(seed, rows, tags);
      const window = windowOf(series);
      const plan = planOf(window, 16 * 2 ** 20);
      if (!plan) throw new Error("nothing is planned");
      const writer = new FrameWriter(packingEnvelope);
      const sizes = [...writer.write(plan, firstRequestId)].flatMap((step) =>
        typeof step === "number" ? [] : [step.length],
      );
      expect(Math.min(...sizes.slice(0, -1))).toBeGreaterThan(new Socket().writableHighWaterMark);
      const body = textOf({ write: () => writer.write(plan, firstRequestId) });
      expect([body.length, sizes.reduce((sum, size) => sum + size, 0)]).toEqual([plan.bytes, plan.bytes]);
      const sent = frameWritten(body);
      expect(sent.times).toHaveLength(plan.times.length);
      for (const { input, values } of series)
        expect(sent.series[input]?.filter((value) => value !== null)).toEqual([...values]);
      const rowOf = new Map(Array.from(plan.times, (time, row) => [time, row]));
      for (const { input, times, values } of series)
        expect(times.every((time, i) => sent.series[input]?.[rowOf.get(time) ?? -1] === values[i])).toBe(true);
    }),
    runs(8),
  );
});

test("a request that is still being written when the next one begins writes no further", () => {
  const plan = planOf(windowOf(sparse(1, 60_000, 4)), 16 * 2 ** 20);
  if (!plan) throw new Error("nothing is planned");
  const writer = new FrameWriter(packingEnvelope);
  const first = writer.write(plan, firstRequestId);
  while (typeof first.next().value === "number");
  const whole = textOf({ write: () => writer.write(plan, firstRequestId) });
  expect(whole).toHaveLength(plan.bytes);
  expect(() => [...first]).toThrow("another request is being written");
});

test("the text of a request whose points change meanwhile ends with an error", () => {
  const series = sparse(1, 60_000, 4);
  const window = windowOf(series);
  const plan = planOf(window, 16 * 2 ** 20);
  if (!plan) throw new Error("nothing is planned");
  const text = new FrameWriter(packingEnvelope).write(plan, firstRequestId);
  while (typeof text.next().value === "number");
  for (const { source, count } of plan.parts) window.settle(source, count);
  expect(() => {
    // Without an end it would yield for ever.
    for (let i = 0; i < 10_000 && text.next().done !== true; i++);
  }).toThrow(RangeError);
});

const pieceBytes = 300_000;
/** More than the kernel holds for a peer that does not read. */
const pieces = 60;

/** Each piece differs, is in the same buffer, and is overwritten as soon as the next one is asked for. */
function reused(): RequestBody & { readonly sha256: string } {
  const buffer = Buffer.alloc(pieceBytes);
  const hash = createHash("sha256");
  for (let i = 0; i < pieces; i++) hash.update(buffer.fill(`${i} of the pieces `));
  return {
    bytes: pieceBytes * pieces,
    sha256: hash.digest("hex"),
    *write() {
      for (let i = 0; i < pieces; i++) {
        yield buffer.fill(`${i} of the pieces `);
        buffer.fill("overwritten");
      }
    },
  };
}

const fixture = (name: string) => join(import.meta.dirname, "../../fixtures/tls", name);
const certified = { key: readFileSync(fixture("broker-key.pem")), cert: readFileSync(fixture("broker.pem")) };

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

async function peerOf(protocol: "http" | "https", listener: Listener) {
  const server = protocol === "https" ? createTlsServer(certified, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // bound to a TCP port
  const url = `${protocol}://127.0.0.1:${port}/rpc`;
  const post = await openHttpPost({ url, caFile: fixture("ca.pem"), connections: 1 }, new ManualClock());
  return {
    post,
    async [Symbol.asyncDispose]() {
      await post[Symbol.asyncDispose]();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.for(["http", "https"] as const)("over %s a peer that reads slowly gets each piece as it was", async (protocol) => {
  await using peer = await peerOf(protocol, async (request, response) => {
    const hash = createHash("sha256");
    for await (const chunk of request) {
      hash.update(chunk);
      await setImmediate();
    }
    response.end(`${request.headers["content-length"]} ${hash.digest("hex")}`);
  });
  const body = reused();
  const expected = `${body.bytes} ${body.sha256}`;
  for (let i = 0; i < 2; i++) expect((await peer.post.post(body, {}, 1_000, signal)).text).toBe(expected);
});

test("success that is answered before the request is sent is no success, and a refusal is one", async () => {
  const statuses = [200, 413];
  await using peer = await peerOf(
    "http",
    (_, response) => void response.writeHead(statuses.shift() ?? 500).end("early"),
  );
  await expect(peer.post.post(reused(), {}, 100, signal)).rejects.toMatchObject({
    code: "SERVICE_UNREACHABLE",
    message: expect.stringContaining("success was answered before the request was sent"),
  });
  expect(await peer.post.post(reused(), {}, 100, signal)).toMatchObject({ status: 413, text: "early" });
});

test.for([
  ["at once", 0],
  ["when it takes no more", 500],
] as const)("a request that is answered %s is written no further, since its points may change", async ([, turns]) => {
  await using peer = await peerOf("http", async (_, response) => {
    for (let i = 0; i < turns; i++) await setImmediate();
    response.writeHead(400).end("early");
  });
  const buffer = Buffer.alloc(pieceBytes);
  let steps = 0;
  let isClosed = false;
  const body: RequestBody = {
    bytes: pieceBytes * pieces,
    *write() {
      try {
        for (let i = 0; i < pieces; i++) {
          steps++;
          yield buffer;
        }
      } finally {
        isClosed = true;
      }
    },
  };
  expect(await peer.post.post(body, {}, 100, signal)).toMatchObject({ status: 400 });
  const begun = steps;
  expect(begun).toBeLessThan(pieces);
  await eventually(() => isClosed);
  expect(steps).toBe(begun);
});

/** A peer on another thread, so that it answers while this one works. `onRequest`: body of a function. */
async function peerBeside(protocol: "http" | "https", onRequest: string) {
  const code = `
    const { parentPort, workerData } = require("node:worker_threads");
    const { protocol, certified } = workerData;
    const onRequest = (request, response) => { ${onRequest} };
    const server = require("node:" + protocol).createServer(certified, onRequest);
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));`;
  const worker = new Worker(code, { eval: true, workerData: { protocol, certified } });
  const port = await new Promise<number>((resolve) => worker.once("message", resolve));
  const url = `${protocol}://127.0.0.1:${port}/rpc`;
  const post = await openHttpPost({ url, caFile: fixture("ca.pem"), connections: 1 }, new ManualClock());
  return {
    post,
    async [Symbol.asyncDispose]() {
      await post[Symbol.asyncDispose]();
      await worker.terminate();
    },
  };
}

/** Keeps this thread busy long enough for a peer on another one to answer. */
function occupy(): void {
  const since = performance.now();
  while (performance.now() - since < 20);
}

test("success is accepted where a TLS socket reports the last piece as sent only after the answer", async () => {
  await using peer = await peerBeside("https", `request.resume().on("end", () => response.end("stored"));`);
  // More than a TLS socket takes before it asks to wait, and little enough for the kernel to take it at once.
  const buffer = Buffer.alloc(20_000);
  const body: RequestBody = {
    bytes: buffer.length * 2,
    *write() {
      for (let i = 0; i < 2; i++) {
        yield sliceWork;
        process.nextTick(occupy);
        yield buffer;
      }
    },
  };
  for (let i = 0; i < 10; i++)
    expect(await peer.post.post(body, {}, 100, signal)).toMatchObject({ status: 200, text: "stored" });
});

test.for(["http", "https"] as const)(
  "over %s most refusals are read although the connection is reset behind them",
  async (protocol) => {
    const refuse = `response.writeHead(413, { connection: "close" }).end("early", () => request.socket.destroy());`;
    await using peer = await peerBeside(protocol, refuse);
    const buffer = Buffer.alloc(pieceBytes);
    const body: RequestBody = {
      bytes: pieceBytes * pieces,
      *write() {
        for (let i = 0; i < pieces; i++) {
          if (i > 0) occupy();
          yield buffer;
        }
      },
    };
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push(await peer.post.post(body, {}, 100, signal).catch(() => undefined));
    // A connection that is reset while a piece is written loses the answer all the same.
    expect(answers.filter((answer) => answer?.status === 413).length).toBeGreaterThan(5);
  },
);
