// Saving many signals or items: within the size limit of a request, and past those that the service refuses.
import { expect, test } from "vitest";
import { savePaged } from "../../src/upload/signals/save-paged.ts";
import { methodCaller } from "../support/method-caller.ts";
import { answers, type Behaviour, fails, ScriptedService, says } from "../support/scripted-service.ts";

const { signal } = new AbortController();
const method = "admin.publishSignals";
const MiB = 2 ** 20;

function savings(count: number, length: number) {
  return Array.from({ length: count }, (_, i) => ({ key: `s${i}`, view: { name: "ü".repeat(length) } }));
}

function keysOf(params: object): readonly string[] {
  return Object.keys((params as { itemsBySignal: object }).itemsBySignal); // the params that savePaged sends
}

const publishes = says((_accept, { params }) => {
  const summaries = keysOf(params).map((key) => [key, { id: `i-${key}`, created: true }]);
  return { result: { itemsBySignal: Object.fromEntries(summaries) } };
});

test("no request exceeds the limit of its method, and a signal that fits in none is reported", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = publishes;
  await using client = await methodCaller(service.url, { limits: { maxRequest: "64KiB" } });
  const saved: string[] = [];
  const all = [...savings(300, 500), { key: "large", view: { name: "x".repeat(70_000) } }];
  const refused = await savePaged(
    client.caller,
    all,
    { method, createOnly: false, saved: (summaries) => saved.push(...summaries.keys()) },
    signal,
  );
  expect(new Set(saved)).toEqual(new Set(savings(300, 500).map(({ key }) => key)));
  expect(refused).toEqual([{ key: "large", reason: expect.stringContaining("larger than a request may be") }]);
  const sizes = service.seen.map(({ bytes }) => bytes);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(65_536);
  // No more requests than necessary.
  expect(sizes.length).toBe(Math.ceil(300 / Math.floor(65_400 / 1_020)));
});

test.for<readonly [string, Behaviour]>([
  ["answers with 413", answers(413)],
  ["closes the connection to", ({ response }) => void response.socket?.destroy()],
])("a proxy that %s long requests gets shorter ones, and all signals are saved", async ([, behaviour]) => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) =>
    (JSON.stringify(exchange.request).length > 100_000 ? behaviour : publishes)(exchange);
  await using client = await methodCaller(service.url);
  const saved: string[] = [];
  const options = {
    method,
    createOnly: false,
    saved: (summaries: ReadonlyMap<string, unknown>) => void saved.push(...summaries.keys()),
  } as const;
  expect(await savePaged(client.caller, savings(1_000, 1_000), options, signal)).toEqual([]);
  expect(saved).toEqual(savings(1_000, 1_000).map(({ key }) => key));
  // 1 MB is halved three times, and no later request is too long.
  expect(service.seen.filter(({ bytes }) => bytes > 200_000)).toHaveLength(3);
});

test("sizes are those of method and version", async () => {
  await using service = await ScriptedService.open();
  const most = async (apiVersion: string) => {
    await using client = await methodCaller(service.url, { apiVersion });
    return (["integration.saveSignals", method] as const).map((each) => client.caller.maxBytes(each) / MiB);
  };
  expect([await most("1.0"), await most("1.1beta1"), await most("1.1")]).toEqual([
    [8, 8],
    [9, 9],
    [8, 8],
  ]);
});

test("signals that the service refuses are named and all others saved; a failing service is reported", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) =>
    (keysOf(exchange.request.params).some((key) => key === "s7" || key === "s99") ? fails(-32602) : publishes)(
      exchange,
    );
  await using client = await methodCaller(service.url);
  const saved = new Set<string>();
  const options = {
    method,
    createOnly: true,
    saved: (summaries: ReadonlyMap<string, unknown>) => {
      for (const key of summaries.keys()) saved.add(key);
    },
  } as const;
  const refused = await savePaged(client.caller, savings(100, 5), options, signal);
  expect(refused.map(({ key }) => key)).toEqual(["s7", "s99"]);
  expect(saved.size).toBe(98);
  expect(service.seen.length).toBeLessThan(30);
  service.otherwise = fails(-32603);
  const failed = savePaged(client.caller, savings(2, 5), options, signal);
  await expect(failed).rejects.toMatchObject({ code: "SERVICE_PROTOCOL" });
});
