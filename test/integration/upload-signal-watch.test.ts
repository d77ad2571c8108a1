// The running uploader compares its signals with the service: lost, changed and unconfigured signals, and items.
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { Secret } from "../../src/core/secret.ts";
import { eventually } from "../support/eventually.ts";
import { accepts, ScriptedService, says } from "../support/scripted-service.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Uploading, uploading } from "../support/uploading.ts";

const speed = 400;
const id = (input: string) => input as InputId;
const configured = (input: string) => !input.startsWith("old.");
const watchOf = ({ uploader }: Uploading) => uploader.status().signals.watch;

async function signalsOf(service: TestService): Promise<Record<string, Record<string, unknown>>> {
  const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true, limit: 1_000 } });
  return Object.fromEntries(Object.values<any>(body?.result?.["signals"]).map((view) => [view.inputId, view])); // oxlint-disable-line typescript/no-explicit-any
}

async function itemsOf(service: TestService): Promise<Record<string, Record<string, unknown>>> {
  const { body } = await service.call(
    "admin.selectSignals",
    {
      integration,
      query: { limit: 1_000 },
      include: ["item"],
      format: { dataAsArray: true, groupIncludedByType: true },
    },
    { version: "1.1" },
  );
  const items: any[] = body?.result?.["included"]?.items ?? []; // oxlint-disable-line typescript/no-explicit-any
  return Object.fromEntries(items.map(({ attributes }) => [attributes.name, attributes]));
}

/** Resolves when the uploader has compared all signals once more. */
async function nextLook(upload: Uploading): Promise<void> {
  const before = watchOf(upload)?.checkedAt;
  await eventually(() => watchOf(upload)?.checkedAt !== before && upload.catalog.pending.size === 0);
}

test.for(["1.1beta1", "1.1"])(
  "a signal that was changed or lost at the service is saved again, others are left alone, at version %s",
  async (apiVersion) => {
    await using service = await testService();
    using folder = temporaryFolder();
    await service.call("integration.saveSignals", { integration, inputs: { "old.tag": { engUnit: "ft" } } });
    const options = { speed, configured, folder: folder.path, service: { apiVersion, signals: { check: "1m" } } };
    await using upload = await uploading({ url: service.url, ...options });
    upload.catalog.describe(id("boiler"), { engUnit: "°C", type: "enum", enumValues: { "0": "off" } });
    await nextLook(upload);
    expect(watchOf(upload)).toMatchObject({ lost: 0, changed: 0, unconfigured: { count: 1, first: ["old.tag"] } });
    expect((await signalsOf(service))["boiler"]).toMatchObject({ engUnit: "°C", type: "enum" });

    await service.call("integration.saveSignals", { integration, inputs: { boiler: { engUnit: "K" } } });
    await eventually(() => watchOf(upload)?.changed === 1);
    await eventually(async () => (await signalsOf(service))["boiler"]?.["engUnit"] === "°C");
    expect((await signalsOf(service))["old.tag"]).toMatchObject({ engUnit: "ft" });
  },
);

test("a signal that the service lost is saved again; if that fails it is reported once", async () => {
  await using service = await ScriptedService.open();
  const nothing = says(() => ({ result: { signals: {} } }));
  service.otherwise = (exchange) => (exchange.request.method === "admin.selectSignals" ? nothing : accepts)(exchange);
  const saves = () => service.requests("integration.saveSignals").length;
  const signals = { check: "1m" };
  await using upload = await uploading({ url: service.url, speed, configured, service: { signals } });
  upload.catalog.describe(id("boiler"), { engUnit: "°C" });
  upload.catalog.describe(id("old.tag"), { engUnit: "ft" });
  await eventually(() => watchOf(upload)?.lost === 1);
  await eventually(() => watchOf(upload)?.kept.count === 1);
  await nextLook(upload);
  // A signal that is no longer configured is not reported as lost.
  expect(watchOf(upload)).toMatchObject({ lost: 1, kept: { first: [{ input: "boiler" }] } });
  expect(saves()).toBe(2);
});

test("with createOnly changes made at the service are kept", async () => {
  await using service = await testService();
  await service.call("integration.saveSignals", { integration, inputs: { boiler: { engUnit: "K" } } });
  const signals = { check: "1m", createOnly: true };
  await using upload = await uploading({ url: service.url, speed, configured, service: { signals } });
  upload.catalog.describe(id("boiler"), { engUnit: "°C" });
  await nextLook(upload);
  await nextLook(upload);
  expect((await signalsOf(service))["boiler"]).toMatchObject({ engUnit: "K" });
  expect(watchOf(upload)).toMatchObject({ changed: 0, kept: { count: 0 } });
});

test("a missing grant is reported, and points and metadata are still sent", async () => {
  const integrations = [{ id: integration, password: new Secret(password), grants: [] }];
  await using service = await testService({ integrations });
  await using upload = await uploading({ url: service.url, speed, configured });
  upload.catalog.describe(id("boiler"), { engUnit: "°C" });
  upload.reader.append({ boiler: [[1e15, 1]] });
  const error = await eventually(() => watchOf(upload)?.error);
  expect(error).toMatchObject({
    message: expect.stringContaining("not permitted"),
    hint: expect.stringContaining("Admin"),
  });
  await eventually(() => upload.reader.empty && upload.catalog.pending.size === 0);
  expect(upload.uploader.status()).toMatchObject({ points: 1, lastError: undefined });
});

test("eligible signals are published and items follow their signals, but not over edits of a person", async () => {
  await using service = await testService();
  using folder = temporaryFolder();
  const signals = { check: "1m", publish: "update", require: ["name", "engUnit"] };
  const options = { speed, configured, folder: folder.path, service: { apiVersion: "1.1", signals } };
  const view = { name: "Boiler", engUnit: "°C", description: "old" };
  {
    await using upload = await uploading({ url: service.url, ...options });
    upload.catalog.describe(id("boiler"), view);
    upload.catalog.describe(id("pump"), { engUnit: "rpm" });
    await eventually(() => watchOf(upload)?.items?.published === 1);
    expect(await itemsOf(service)).toMatchObject({ Boiler: { engUnit: "°C", visible: true } });
    expect(watchOf(upload)?.items?.unfit).toEqual({ count: 1, first: [{ input: "pump", reason: "name" }] });
    upload.catalog.describe(id("boiler"), { ...view, engUnit: "K" });
    await eventually(async () => (await itemsOf(service))["Boiler"]?.["engUnit"] === "K");
  }
  const signalId: unknown = (await signalsOf(service))["boiler"]?.["id"];
  const edited = { name: "Boiler", type: "numeric", sourceType: "measurement", engUnit: "K", description: "mine" };
  const itemsBySignal = { [String(signalId)]: { ...edited, visible: true } };
  await service.call("admin.publishSignals", { integration, itemsBySignal }, { version: "1.1" });
  // A new process reads from disk what was published.
  await using upload = await uploading({ url: service.url, ...options });
  upload.catalog.describe(id("boiler"), { ...view, engUnit: "F", description: "new" });
  await eventually(async () => (await itemsOf(service))["Boiler"]?.["engUnit"] === "F");
  expect(await itemsOf(service)).toMatchObject({ Boiler: { engUnit: "F", description: "mine", visible: true } });
  await eventually(() => watchOf(upload)?.items?.edited.count === 1);
  expect(watchOf(upload)?.items?.edited.first).toEqual([{ input: "boiler", reason: "description" }]);
});

test("createOnly creates items and changes no existing one, at version 1.1beta1", async () => {
  await using service = await testService();
  const signals = { check: "off", publish: "createOnly", require: [] };
  await using upload = await uploading({ url: service.url, speed, configured, service: { signals } });
  upload.catalog.describe(id("boiler"), { name: "Boiler", engUnit: "°C" });
  await eventually(() => watchOf(upload)?.items?.published === 1);
  upload.catalog.describe(id("boiler"), { name: "Boiler", engUnit: "K" });
  await nextLook(upload);
  expect(await itemsOf(service)).toMatchObject({ Boiler: { engUnit: "°C" } });
});
