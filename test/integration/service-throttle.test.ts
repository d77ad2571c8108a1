import { request } from "node:http";
import { afterAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { basic, integration, password, type TestService, testService } from "../support/service.ts";

const params = { integration, data: { times: [], series: {} } };

test("a call above the rate waits for its turn and is then carried out", async () => {
  const clock = new ManualClock();
  await using service = await testService({ throttle: "queue" }, testRuntime({ clock }));
  const done: number[] = [];
  const call = async (n: number) => {
    const reply = await service.call("integration.insert", params);
    expect(reply.status).toBe(200);
    done.push(n);
  };
  await call(1);
  const second = call(2);
  await eventually(() => service.counters().get("integration.insert")?.requests === 2);
  await clock.advance(999);
  expect(done).toEqual([1]);
  // Each method has its own rate limit.
  expect((await service.call("integration.saveSignals", { integration, inputs: {} })).status).toBe(200);
  await clock.advance(1);
  await second;
  expect(done).toEqual([1, 2]);
});

test("a call that has waited 10 s is answered HTTP 504", async () => {
  const clock = new ManualClock();
  await using service = await testService({ throttle: "queue" }, testRuntime({ clock }));
  const replies = Array.from({ length: 13 }, () => service.call("integration.insert", params));
  await eventually(() => service.counters().get("integration.insert")?.requests === 13);
  await clock.advance(10_000);
  const statuses = (await Promise.all(replies)).map(({ status }) => status).toSorted((a, b) => a - b);
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(10);
  expect(statuses.at(-1)).toBe(504);
});

/**
 * The number of a request that timed out with 504 while it ran. A fast machine may finish a request before the timeout.
 */
async function timedOut(service: TestService, clock: ManualClock, requestOf: (n: number) => string): Promise<number> {
  for (let n = 1; ; n++) {
    let answered = false;
    const reply = service.post(requestOf(n)).finally(() => (answered = true));
    await eventually(() => answered || clock.sleeping > 0);
    await clock.advance(15_000);
    if ((await reply).status === 504) return n;
  }
}

test("a repeated write that was answered with a timeout is not run again: its outcome is the answer", async () => {
  const clock = new ManualClock();
  await using service = await testService({}, testRuntime({ clock }));
  const times = Array.from({ length: 50 }, (_, i) => new Date(Date.UTC(2026, 0, 1) + i * 1_000).toISOString());
  const requestOf = (n: number, id = "1") => {
    const series = Object.fromEntries(Array.from({ length: 2_000 }, (_, s) => [`n${n}s${s}`, times.map(() => s)]));
    const data = JSON.stringify({ times, series });
    return `{"jsonrpc":"2.0","id":${id},"method":"integration.insert","params":{"integration":"${integration}","data":${data}}}`;
  };
  const n = await timedOut(service, clock, requestOf);
  await service.call("integration.saveSignals", { integration, inputs: { other: {} } });
  const repeated = await service.post(requestOf(n, '"second"'));
  expect([repeated.status, repeated.body?.id]).toEqual([200, "second"]);
  // The result of the first run: the signal was created.
  expect(repeated.body?.result?.["signalsByInput"][`n${n}s0`]).toMatchObject({ created: true });
  const later = await service.post(requestOf(n, "3"));
  expect(later.body?.result?.["signalsByInput"][`n${n}s0`]).toMatchObject({ created: false });
});

test("repeating a save that was answered with a timeout overwrites metadata saved in between", async () => {
  const clock = new ManualClock();
  await using service = await testService({}, testRuntime({ clock }));
  const requestOf = (n: number, id = "1") => {
    const inputs = Object.fromEntries(Array.from({ length: 3_000 }, (_, s) => [`s${s}`, { name: `try ${n}` }]));
    const params = JSON.stringify({ integration, inputs });
    return `{"jsonrpc":"2.0","id":${id},"method":"integration.saveSignals","params":${params}}`;
  };
  const n = await timedOut(service, clock, requestOf);
  await service.call("integration.saveSignals", { integration, inputs: { s0: { name: "in between" } } });
  expect((await service.post(requestOf(n, "2"))).status).toBe(200);
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true, limit: 1 } });
  expect(Object.values(body?.result?.["signals"])).toMatchObject([{ inputId: "s0", name: `try ${n}` }]);
});

test("a body that takes longer than the 15 s of a call is run once it is complete", async () => {
  const clock = new ManualClock();
  await using service = await testService({}, testRuntime({ clock }));
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "integration.insert", params });
  const headers = {
    authorization: basic(integration, password),
    "content-type": "application/json",
    "content-length": body.length,
    expect: "100-continue",
  };
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const sent = request(`${service.url}/rpc`, { method: "POST", headers }, (answer) =>
      resolve(answer.resume().statusCode),
    );
    // The service has read the headers.
    sent.once("continue", () => void clock.advance(20_000).then(() => sent.end(body)));
    sent.once("error", reject);
  });
  expect(status).toBe(200);
});

const rejecting = new ManualClock();
const strict = await testService({ throttle: "reject" }, testRuntime({ clock: rejecting }));
afterAll(() => strict[Symbol.asyncDispose]());

test("with throttle reject a call above the rate is answered 429 with the waiting time", async () => {
  expect((await strict.call("integration.insert", params)).status).toBe(200);
  const refused = await strict.call("integration.insert", params);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
  await rejecting.advance(1_000);
  expect((await strict.call("integration.insert", params)).status).toBe(200);
});

test.each([
  ["admin.selectSignals", { integration }, "1.1beta1", 10],
  ["admin.publishSignals", { integration, itemsBySignal: {} }, "1.1beta1", 10],
  ["admin.publishSignals", { integration, itemsBySignal: {} }, "1.1", 5],
  ["platform.selectItems", {}, "1.1beta1", 10],
])("%s with %j at %s may be called %i times in a second", async (method, given, version, rate) => {
  await rejecting.advance(1_000);
  const statuses: number[] = [];
  for (let i = 0; i <= rate; i++) statuses.push((await strict.call(method, given, { version })).status);
  expect(statuses).toEqual([...Array.from({ length: rate }, () => 200), 429]);
});
