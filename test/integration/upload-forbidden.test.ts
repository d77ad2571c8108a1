// A service that accepts only some of the metadata, or none.
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { eventually } from "../support/eventually.ts";
import { accepts, answers, fails, ScriptedService } from "../support/scripted-service.ts";
import { type Uploading, uploading } from "../support/uploading.ts";

const save = "integration.saveSignals";

test("metadata without permission are shown and retried; points and other signals are not held up", async () => {
  await using service = await ScriptedService.open();
  let permitted = false;
  service.otherwise = (exchange) =>
    (!permitted && "tag7" in (exchange.request.params.inputs ?? {}) ? fails(-32003) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 1_000 });
  const inputs = Array.from({ length: 20 }, (_, i) => `tag${i}`);
  for (const input of inputs) upload.catalog.describe(input as InputId, { engUnit: "V" });
  upload.reader.append(Object.fromEntries(inputs.map((input) => [input, [[1e15, 1]]])));
  await eventually(() => upload.reader.empty);
  // Between two attempts to save the refused metadata.
  const signals = await eventually(() => {
    const now = upload.uploader.status().signals;
    return now.saved === 19 && now.pending === 0 && now;
  });
  expect(signals.refused).toEqual([{ input: "tag7", reason: "forbidden (-32003)" }]);
  expect(service.stored.size).toBe(20);
  // A signal that is added later is saved first, then its points are inserted.
  upload.catalog.describe("later" as InputId, { engUnit: "A" });
  upload.reader.append({ later: [[1e15, 1]] });
  await eventually(() => upload.reader.empty);
  expect(service.signals.get("later")).toMatchObject({ engUnit: "A" });
  permitted = true;
  await eventually(() => upload.uploader.status().signals.saved === 21);
  expect(upload.uploader.status().signals.refused).toEqual([]);
});

test("without permission for any metadata this is shown, and the points of new inputs are sent", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => (exchange.request.method === save ? fails(-32003) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 200 });
  upload.catalog.describe("a" as InputId, {});
  upload.catalog.describe("b" as InputId, {});
  upload.reader.append({ a: [[1e15, 1]], b: [[1e15, 1]] });
  await eventually(() => upload.reader.empty);
  await eventually(() => upload.uploader.status().signals.refused.length === 2);
  expect(upload.uploader.status().lastError).toMatchObject({
    code: "SERVICE_REFUSED",
    current: true,
    message: "saving metadata: forbidden (-32003)",
  });
});

/** Describes metadata and appends one point of each of `count` inputs. */
function addSignals({ catalog, reader }: Uploading, prefix: string, count: number): void {
  const inputs = Array.from({ length: count }, (_, i) => `${prefix}${i}`);
  for (const input of inputs) catalog.describe(input as InputId, { engUnit: "V" });
  reader.append(Object.fromEntries(inputs.map((input) => [input, [[1e15, 1]]])));
}

test("where the service refuses the metadata of all signals, their points arrive in a minute, and later signals are saved", async () => {
  await using service = await ScriptedService.open();
  const isBad = (input: string) => input.startsWith("bad");
  service.otherwise = (exchange) =>
    (Object.keys(exchange.request.params.inputs ?? {}).some(isBad) ? answers(400) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  addSignals(upload, "bad", 1_000);
  await eventually(() => upload.reader.empty);
  // At one request a second. A search for each of the signals would take 2,000.
  expect(service.requests(save).length).toBeLessThan(60);
  addSignals(upload, "good", 10);
  await eventually(() => service.signals.size === 10);
  expect(service.requests(save).length).toBeLessThan(120);
  expect(upload.uploader.status().signals.refused[0]?.reason).toContain("HTTP 400");
});

test("while the bad ones among many signals are searched for, their points arrive within minutes", async () => {
  await using service = await ScriptedService.open();
  const isBad = (input: string) => /[02468]$/.test(input);
  service.otherwise = (exchange) =>
    (Object.keys(exchange.request.params.inputs ?? {}).some(isBad) ? answers(400) : accepts)(exchange);
  await using upload = await uploading({ url: service.url, speed: 500 });
  addSignals(upload, "tag", 300);
  await eventually(() => upload.reader.empty);
  // The search takes some 450 requests.
  expect(service.requests(save).length).toBeLessThan(100);
  await eventually(() => service.signals.size === 150);
});

test("metadata that the service names as refused are refused in one more request, each with its own reason", async () => {
  await using service = await ScriptedService.open();
  service.otherwise = (exchange) => {
    const bad = Object.keys(exchange.request.params.inputs ?? {}).filter((input) => input.startsWith("bad"));
    const params = Object.fromEntries(bad.map((input) => [`inputs.${input}.engUnit`, [`too long for ${input}`]]));
    return (bad.length > 0 ? fails(-32602, { trace: "t", params }) : accepts)(exchange);
  };
  await using upload = await uploading({ url: service.url, speed: 500 });
  addSignals(upload, "bad", 50);
  addSignals(upload, "good", 50);
  await eventually(() => upload.reader.empty && upload.uploader.status().signals.refused.length === 50);
  expect(service.signals.size).toBe(50);
  expect(service.requests(save).length).toBe(3);
  expect(upload.uploader.status().signals.refused).toContainEqual({
    input: "bad7",
    reason: "inputs.bad7.engUnit: too long for bad7",
  });
});

test("where nothing but the metadata gets no answer, the points of known and of new inputs are sent", async () => {
  await using service = await ScriptedService.open();
  await using upload = await uploading({ url: service.url, speed: 500 });
  addSignals(upload, "known", 10);
  await eventually(() => upload.reader.empty);
  service.otherwise = (exchange) =>
    exchange.request.method === save ? void exchange.response.destroy() : accepts(exchange);
  for (let i = 0; i < 10; i++) upload.catalog.describe(`known${i}` as InputId, { engUnit: "mV" });
  upload.reader.append({ known3: [[1e15 + 1e6, 2]] });
  await eventually(() => upload.reader.empty);
  addSignals(upload, "new", 10);
  let last = 1e15 + 2e6;
  await eventually(() => {
    upload.reader.append({ known4: [[(last += 1e6), 2]] });
    return [...service.stored.keys()].filter((key) => key.startsWith("new")).length === 10;
  });
});
