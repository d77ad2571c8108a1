// Thousands of invalid requests: mutated calls, random JSON, random bytes and headers.
import { Agent, request as httpRequest } from "node:http";
import { text as textOf } from "node:stream/consumers";
import fc from "fast-check";

import type { TestService } from "./service.ts";
import { basic, integration, password } from "./service.ts";

export interface FuzzReport {
  readonly requests: number;
  readonly slowestMs: number;
  /** HTTP status or JSON-RPC error code → count. */
  readonly answers: ReadonlyMap<number, number>;
}

const times = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01.000001+02:00"];
const view = {
  name: "n",
  type: "numeric",
  sourceType: "measurement",
  labels: { a: ["b"] },
  enumValues: { 1: "on" },
  gapDetection: "PT1M",
};
const data = { include: true, notBefore: times[0], before: "2026-01-02T00:00:00Z", rollup: "PT1H" };
const query = {
  filter: { name: { $regex: "^n" }, $or: [{ id: { $in: ["x"] } }, { createdAt: { $gte: times[0] } }] },
  sort: ["-name"],
  limit: 5,
  skip: 0,
};
const frame = {
  filter: { times: { $gte: times[0], $lt: "2026-01-02T00:00:00Z" }, series: { $in: ["a"] } },
  rollup: "P1M",
  timeZone: "Europe/Oslo",
  last: 3,
};

/** Valid calls. Most requests are one of these with a part replaced. */
const calls: readonly (readonly [method: string, params: object])[] = [
  ["integration.insert", { integration, data: { times, series: { a: [1, null], "b/c": [2.5, -1e300] } } }],
  ["integration.saveSignals", { integration, inputs: { a: view, b: {} }, createOnly: false }],
  ["admin.selectSignals", { integration, signals: { include: true, ...query }, items: { include: true } }],
  ["admin.selectSignals", { integration, query, include: ["item"], format: { dataAsArray: false } }],
  ["admin.publishSignals", { integration, itemsBySignal: { c8ktonqsahsmemfs7lvg: view } }],
  ["platform.selectItems", { items: { include: true, ...query }, data }],
  ["platform.selectItems", { query }],
  ["platform.dataFrame", { query, data: frame, include: ["item"] }],
  [
    "platform.evaluate",
    {
      items: [{ id: "c8ktonqsahsmemfs7lvg", aggregation: "avg", alias: "a", lag: 1 }],
      calculations: [{ formula: "gapfill(a) ** 2 + sin(PI)", alias: "c" }],
      data: { ...frame, rollup: "PT1H" },
    },
  ],
];

const strange = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -0,
    -1,
    1e308,
    2 ** 53,
    0.5,
    "",
    "__proto__",
    "constructor",
    "9".repeat(400),
    "\u0000",
    "\ud800",
    "P",
    "PT0S",
    "P9999Y",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "window",
    "(a+)+$",
    "((((",
    "$in",
    [],
    {},
    [[]],
    [null],
    { $in: null },
    { $regex: "[" },
    { a: { a: { a: {} } } },
  ),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ maxLength: 20 }),
  fc.double(),
  fc.integer(),
);
const key = fc.oneof(
  fc.constantFrom(
    "__proto__",
    "constructor",
    "$or",
    "$and",
    "$nin",
    "labels.a",
    "annotations.x/y.z",
    "include",
    "limit",
  ),
  fc.string({ maxLength: 8 }),
);

/** Replaces up to three parts of a value. */
const mutated = fc
  .tuple(
    fc.constantFrom(...calls),
    fc.array(fc.tuple(fc.nat(30), fc.constantFrom("replace", "drop", "add"), key, strange), { maxLength: 3 }),
  )
  .map(([[method, params], changes]) => {
    const request: Record<string, unknown> = { jsonrpc: "2.0", id: 1, method, params: structuredClone(params) };
    for (const [at, how, name, shared] of changes) {
      const value: unknown = structuredClone(shared);
      const places = placesOf(request);
      const [holder, member] = places[at % places.length] ?? [request, "params"];
      if (how === "replace") Reflect.set(holder, member, value);
      else if (how === "drop") Reflect.deleteProperty(holder, member);
      else Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true });
    }
    return JSON.stringify(request);
  });

const body = fc.oneof(
  { weight: 12, arbitrary: mutated },
  { weight: 1, arbitrary: fc.json({ maxDepth: 6 }) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(mutated, fc.nat(400), fc.string({ maxLength: 3 }))
      .map(([text, at, bit]) => text.slice(0, at) + bit + text.slice(at + 1)),
  },
  {
    weight: 1,
    arbitrary: fc
      .nat(200)
      .map(
        (depth) =>
          `{"jsonrpc":"2.0","id":1,"method":"platform.selectItems","params":{"items":{"filter":${'{"$and":['.repeat(depth)}{}${"]}".repeat(depth)}}}}`,
      ),
  },
);
const headers = fc.record(
  {
    "x-api-version": fc.constantFrom("1.0", "1.1beta1", "1.1", "1.1", "9.9", ""),
    "content-type": fc.constantFrom("application/json", "application/json", "application/json", "text/plain"),
    authorization: fc.oneof(
      { weight: 30, arbitrary: fc.constant(basic(integration, password)) },
      { weight: 1, arbitrary: fc.constantFrom("Basic x", "Bearer a.b.c", "") },
    ),
  },
  { requiredKeys: ["authorization", "content-type"] },
);

/** Sends `requests` of them, several at a time. Rejects at the first invalid answer. */
export async function fuzz(service: TestService, requests: number, seed: number): Promise<FuzzReport> {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const answers = new Map<number, number>();
  let slowestMs = 0;
  let sent = 0;
  let samples: [string | Uint8Array, Readonly<Record<string, string | undefined>>][] = [];
  const send = async () => {
    while (sent < requests) {
      // A thousand at a time, because all at once would take gigabytes.
      if (samples.length === 0) samples = fc.sample(fc.tuple(body, headers), { numRuns: 1_000, seed: seed + sent });
      const [payload, given] = samples.pop() ?? ["", {}];
      sent++;
      const start = performance.now();
      const { status, text } = await post(`${service.url}/rpc`, payload, given, agent);
      slowestMs = Math.max(slowestMs, performance.now() - start);
      const code = check(status, text, payload);
      answers.set(code, (answers.get(code) ?? 0) + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: 4 }, send));
  } finally {
    agent.destroy();
  }
  return { requests: sent, slowestMs, answers };
}

function post(
  url: string,
  payload: string | Uint8Array,
  given: Readonly<Record<string, string | undefined>>,
  agent: Agent,
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest(url, { method: "POST", agent, headers: given }, (response) => {
      textOf(response).then((text) => resolve({ status: response.statusCode ?? 0, text }), reject);
    });
    sent.on("error", reject);
    sent.end(payload);
  });
}

function check(status: number, text: string, payload: string | Uint8Array): number {
  const complain = (what: string) =>
    new Error(`${what} (HTTP ${status} ${text.slice(0, 500)}) to ${String(payload).slice(0, 2_000)}`);
  if (status === 204) {
    if (text !== "") throw complain("a body with 204");
    return status;
  }
  const answer = JSON.parse(text) as { result?: unknown; error?: { code?: unknown; data?: unknown } | string }; // checked below
  if (status !== 200) {
    if (![400, 401, 413, 415].includes(status) || typeof answer.error !== "string")
      throw complain("an unexpected refusal");
    return status;
  }
  if (typeof answer.error === "string" || (answer.result === undefined) === (answer.error === undefined))
    throw complain("neither result nor error");
  if (answer.error === undefined) return status;
  if (typeof answer.error.code !== "number" || answer.error.code === -32603) throw complain("an internal error");
  return answer.error.code;
}

function placesOf(value: unknown, places: [object, string][] = []): [object, string][] {
  if (typeof value === "object" && value !== null)
    for (const member of Object.keys(value)) {
      places.push([value, member]);
      placesOf(Reflect.get(value, member), places);
    }
  return places;
}
