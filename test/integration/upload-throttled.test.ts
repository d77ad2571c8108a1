// A service that asks to wait. Where it always does so for one request, that request is the cause, not the rate.
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import type { Points } from "../support/memory-reader.ts";
import { accepts, answers, fails, ScriptedService } from "../support/scripted-service.ts";
import { uploading } from "../support/uploading.ts";

const insert = "integration.insert";

function ticks(count: number, inputs: number): Points {
  const values = Array.from({ length: count }, (_, i) => [1e15 + i * 1e6, i] as const);
  return Object.fromEntries(Array.from({ length: inputs }, (_, k) => [`tag${k}`, values]));
}

test.each([
  ["503 with Retry-After", answers(503, "", { "retry-after": "1" })],
  ["−32015", fails(-32015)],
] as const)("where requests with one input always get %s, all others arrive", async (_, waits) => {
  await using service = await ScriptedService.open();
  let isFailing = true;
  service.otherwise = (exchange) =>
    (isFailing && "tag7" in (exchange.request.params.data?.series ?? {}) ? waits : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(3, 100));
  await eventually(() => service.stored.size === 297);
  expect(service.requests(insert).length).toBeLessThan(50);
  isFailing = false;
  await eventually(() => upload.reader.empty);
  expect([service.stored.size, upload.uploader.status().rejected]).toEqual([300, 0]);
});

test.each([
  ["429 at once", answers(429), 5],
  ["504 with Retry-After", answers(504, "", { "retry-after": "1" }), 2],
] as const)("where long requests always get %s, shorter ones follow", async (_, waits, patience) => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => (Number(service.seen.at(-1)?.bytes) > 150_000 ? waits : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  upload.reader.append(ticks(20_000, 2));
  await eventually(() => upload.reader.empty);
  expect(service.stored.size).toBe(40_000);
  const [first] = service.requests(insert);
  const halvings = Math.ceil(Math.log2((first?.bytes ?? 0) / 150_000));
  const refused = service.requests(insert).filter(({ bytes }) => bytes > 150_000);
  expect(refused.length).toBeLessThan(patience + 8 * halvings);
});

test("a service that asks everybody to wait for minutes gets full requests afterwards, without searching", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = answers(429, "", { "retry-after": "20" });
  await using upload = await uploading({ url: service.url, speed: 1_000 });
  upload.reader.append(ticks(20_000, 2));
  await eventually(() => service.requests(insert).length === 12);
  expect(upload.uploader.status()).toMatchObject({ state: "throttled", parked: { refused: 0 } });
  service.otherwise = accepts;
  await eventually(() => upload.reader.empty);
  expect(service.requests(insert).length).toBeLessThan(20);
});
