// A request is written piece by piece into one buffer, while it is sent.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Series } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { RequestBody } from "../../../src/core/sink.ts";
import { openHttpPost } from "../../../src/upload/client/http-post.ts";
import { FrameWriter, firstRequestId } from "../../../src/upload/packing/frame.ts";
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
