// What the service has of our signals, read in each dialect and compared with what was saved.
import { expect, test } from "vitest";
import type { InputId, SignalId } from "../../src/core/point.ts";
import { Secret } from "../../src/core/secret.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { CatalogEntry } from "../../src/upload/catalog.ts";
import { openCredentials } from "../../src/upload/open-credentials.ts";
import { serviceOptions } from "../../src/upload/options.ts";
import { Pacer } from "../../src/upload/pacer.ts";
import { RpcClient } from "../../src/upload/rpc-client.ts";
import { checkSignals } from "../../src/upload/signal-check.ts";
import { readStoredSignals } from "../../src/upload/stored-signals.ts";
import type { ApiVersion } from "../../src/wire/api-version.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, type TestService, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { fastClock } from "../support/uploading.ts";

async function stored(service: TestService, apiVersion: ApiVersion) {
  using folder = temporaryFolder();
  const runtime = testRuntime({ clock: fastClock(100) });
  const options = serviceOptions.parse({ url: service.url, apiVersion, integration, auth: { basic: { password } } });
  await using credentials = await openCredentials(options, folder.file("token.json"), runtime);
  await using client = await RpcClient.open(
    { options, credentials, agent: "tagferry/test" },
    testRuntime({ clock: systemClock() }),
  );
  const { signal } = new AbortController();
  const pacer = new Pacer(runtime.clock, 1);
  const call = client.call.bind(client);
  return await readStoredSignals({ integration, apiVersion, pacer, call }, signal);
}

function entry(input: string, signal: CatalogEntry["signal"], saved = true): CatalogEntry {
  return { input: input as InputId, signal, hash: "h", saved, id: "c8ktonqsahsmemfs7lv0" as SignalId };
}

const asSaved = {
  name: "Boiler",
  engUnit: "°C",
  type: "enum",
  enumValues: { "0": "off", "1": "on" },
  labels: { hall: ["1", "2"] },
  gapDetection: "P40D",
  annotations: { "acme/line": "7" },
} as const;

test.for(["1.1beta1", "1.1"] as const)(
  "what was changed, lost and never ours is found, at version %s",
  async (version) => {
    await using service = await testService();
    const inputs = { "boiler.temp": asSaved, "pump.speed": { engUnit: "rpm" }, "old.tag": {} };
    await service.call("integration.saveSignals", { integration, inputs }, { version });
    const ours = [
      entry("boiler.temp", asSaved),
      entry("pump.speed", { engUnit: "1/min" }),
      entry("gone.tag", { engUnit: "bar" }),
      entry("new.tag", { engUnit: "bar" }, false),
    ];
    const all = await stored(service, version);
    expect(all?.length).toBe(3);
    const configured = new Set<string>(ours.map(({ input }) => input));
    expect(checkSignals(ours, all ?? [], (input) => configured.has(input))).toEqual({
      lost: ["gone.tag"],
      changed: [{ input: "pump.speed", changes: [{ attribute: "engUnit", ours: "1/min", theirs: "rpm" }] }],
      unknown: ["old.tag"],
      nameless: 0,
    });
  },
);

test.for(["1.1beta1", "1.1"] as const)(
  "more signals than a page holds are all read, at version %s",
  async (version) => {
    await using service = await testService();
    const inputs = Object.fromEntries(Array.from({ length: 2_000 }, (_, i) => [`tag${i}`, {}]));
    await service.call("integration.saveSignals", { integration, inputs }, { version });
    const all = await stored(service, version);
    expect(new Set(all?.map(({ input }) => input))).toEqual(new Set(Object.keys(inputs)));
  },
);

test("without the grant nothing is read and nothing fails", async () => {
  await using service = await testService({
    integrations: [{ id: integration, password: new Secret(password), grants: [] }],
  });
  expect(await stored(service, "1.1beta1")).toBeUndefined();
  // This version has no such method, whatever is granted.
  expect(await stored(service, "1.0")).toBeUndefined();
});

test("annotations that others added are no change, those of ours that were changed are", () => {
  const ours = [entry("a", { annotations: { mine: "1" } })];
  const theirs = (annotations: Record<string, string>) => [
    { id: "c8ktonqsahsmemfs7lv0" as SignalId, input: "a", attributes: { annotations } },
  ];
  expect(checkSignals(ours, theirs({ mine: "1", yours: "2" }), () => true).changed).toEqual([]);
  expect(checkSignals(ours, theirs({ mine: "2" }), () => true).changed.length).toBe(1);
  expect(checkSignals(ours, theirs({}), () => true).changed.length).toBe(1);
});

test("a service that hides Input IDs makes no signal look lost", () => {
  const hidden = [{ id: "c8ktonqsahsmemfs7lv0" as SignalId, input: undefined, attributes: {} }];
  expect(checkSignals([entry("a", {})], hidden, () => true)).toEqual({
    lost: [],
    changed: [],
    unknown: [],
    nameless: 1,
  });
});
