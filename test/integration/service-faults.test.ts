import { afterAll, beforeEach, expect, test } from "vitest";
import { parseFault } from "../../src/service/config/fault.ts";
import { eventually } from "../support/eventually.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { integration, testService } from "../support/service.ts";

const clock = new ManualClock("2026-03-01T12:00:00Z");
const service = await testService({}, testRuntime({ clock }));
afterAll(() => service[Symbol.asyncDispose]());
beforeEach(() => service.setFaults([]));

function faults(...texts: string[]) {
  service.setFaults(
    texts.map((text) => {
      const fault = parseFault(text);
      if (typeof fault === "string") throw new Error(fault);
      return fault;
    }),
  );
}
let inputs = 0;
const insert = (input: string) =>
  service.call("integration.insert", {
    integration,
    data: { times: ["2026-01-01T00:00:00Z"], series: { [input]: [1] } },
  });
async function isStored(input: string): Promise<boolean> {
  service.setFaults([]);
  const { body } = await service.call("admin.selectSignals", {
    integration,
    signals: { include: true, filter: { input } },
  });
  return Object.keys(body?.result?.signals).length === 1;
}
const fresh = () => `input${inputs++}`;

test.each([
  ["refuse", false],
  ["cutBefore", false],
  ["cutAfter", true],
])("%s cuts the connection; the points are stored: %s", async (kind, stored) => {
  const input = fresh();
  faults(kind);
  await expect(insert(input)).rejects.toThrow("fetch failed");
  expect(await isStored(input)).toBe(stored);
});

test.each([
  ["status=500", 500, false],
  ["status=401", 401, false],
  ["status=429", 429, false],
  ["html", 200, false],
  ["garbage", 200, true],
])("%s is answered with HTTP %i and no result; the points are stored: %s", async (kind, status, stored) => {
  const input = fresh();
  faults(kind);
  const reply = await insert(input);
  expect(reply.status).toBe(status);
  expect(reply.body?.result).toBeUndefined();
  if (status === 429) expect(reply.headers.get("retry-after")).toBe("3");
  if (kind === "html") expect(reply.headers.get("content-type")).toBe("text/html");
  expect(await isStored(input)).toBe(stored);
});

test("partial stores the other inputs and names the refused ones", async () => {
  faults("partial=bad+unknown");
  const data = { times: ["2026-01-01T00:00:00Z"], series: { good: [1], bad: [2] } };
  const { body } = await service.call("integration.insert", { integration, data });
  expect(body?.error).toMatchObject({
    code: -32021,
    data: {
      partialResult: { signalsByInput: { good: { created: true } } },
      invalidResources: [{ id: "bad", type: "signals", message: "refused on request" }],
    },
  });
  expect([await isStored("good"), await isStored("bad")]).toEqual([true, false]);
});

test("skew sets the clock of the service forward", async () => {
  const input = fresh();
  faults("skew=1h");
  await insert(input);
  service.setFaults([]);
  const { body } = await service.call("admin.selectSignals", {
    integration,
    signals: { include: true, filter: { input } },
  });
  expect(Object.values(body?.result?.signals)).toMatchObject([{ meta: { createdAt: "2026-03-01T13:00:00Z" } }]);
});

test("delay delays only the selected calls", async () => {
  faults("delay=5s,method=insert,first=1");
  let done = false;
  const slow = insert(fresh()).then(() => (done = true));
  await eventually(() => clock.sleeping > 0);
  expect((await service.call("admin.selectSignals", { integration })).status).toBe(200);
  await clock.advance(4_999);
  expect(done).toBe(false);
  await clock.advance(1);
  await slow;
});

test("a call that takes more than 15 s in all is answered 504 and aborted", async () => {
  const input = fresh();
  faults("delay=16s");
  const slow = insert(input);
  await eventually(() => clock.sleeping > 0);
  await clock.advance(16_000);
  const reply = await slow;
  expect([reply.status, reply.text]).toEqual([504, expect.stringContaining("it was not run")]);
  expect(await isStored(input)).toBe(false);
});

test("the calls of clients can be read at /metrics", async () => {
  await insert(fresh());
  const text = await (await fetch(new URL("/metrics", service.url))).text();
  expect(text).toMatch(/^tagferry_service_requests_total\{method="integration.insert"\} \d+$/m);
  expect(text).toMatch(/^tagferry_service_request_bytes_total\{method="integration.insert"\} \d+$/m);
  expect(text).toMatch(/^tagferry_service_smallest_spacing_seconds\{method="integration.insert"\} [\d.e-]+$/m);
  expect(text).toMatch(/^tagferry_service_max_starts_per_second\{method="integration.insert"\} \d+$/m);
});
