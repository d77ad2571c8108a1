// A service that accepts only some of the metadata, or none.
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { eventually } from "../support/eventually.ts";
import { accepts, fails, ScriptedService } from "../support/scripted-service.ts";
import { uploading } from "../support/uploading.ts";

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
