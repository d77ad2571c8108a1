import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { clarifyGoAutomation, clarifyGoProgram, clarifyGoSuite } from "../support/clarify-go.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);

test("clarify-go's own integration suite passes", { timeout: 120_000 }, async () => {
  await using service = await testService({ namespace: "clarify" });
  const env = { CLARIFY_USERNAME: integration, CLARIFY_PASSWORD: password, CLARIFY_ENDPOINT: service.url };
  const suite = await clarifyGoSuite();
  const { stdout } = await run(suite, ["-test.v"], { env, maxBuffer: 2 ** 26 }).catch((error: unknown) => {
    throw new Error(String(Object(error).stdout));
  });
  const ended = [...stdout.matchAll(/^\s*--- (\w+): (\S+)/gm)].map(([, how, name]) => `${how} ${name}`);
  expect(ended.filter((line) => !line.startsWith("PASS"))).toEqual([]);
  expect(ended.length).toBe(28);
});

test("clarify-go connects a signal to an item and disconnects it", { timeout: 120_000 }, async () => {
  await using service = await testService({ namespace: "clarify" });
  const call = async (method: string, params: object) =>
    (await service.call(method, { integration, ...params }, { version: "1.1" })).body?.result;
  const saved = await call("integration.saveSignals", { inputs: { first: {}, second: {} } });
  const [first, second] = ["first", "second"].map((input) => saved?.["signalsByInput"][input].id);
  const published = await call("admin.publishSignals", {
    itemsBySignal: { [first]: { name: "Both", type: "numeric", sourceType: "measurement" } },
  });
  const item = published?.["itemsBySignal"][first].id;
  const program = await clarifyGoProgram();
  const { stdout } = await run(program, [service.url, integration, password, "second", item]);
  const { connected, disconnected } = JSON.parse(stdout);
  expect(connected).toMatchObject({
    meta: { total: 1 },
    data: [{ id: second, relationships: { item: { data: { type: "items", id: item } } } }],
  });
  expect(disconnected.data).toMatchObject([{ id: second, relationships: { item: { data: null } } }]);
});

test("clarify-go's example finds a state in the last hour by a condition, once with the rollup that it lacks", {
  timeout: 240_000,
}, async () => {
  using folder = temporaryFolder();
  await using service = await testService({ namespace: "clarify" });
  const program = await clarifyGoAutomation();
  const file = folder.file("credentials.json");
  const credentials = { type: "basic-auth", clientId: integration, clientSecret: password };
  writeFileSync(file, JSON.stringify({ apiUrl: service.url, integration, credentials }));
  const routine = async (name: string, item = "") =>
    (
      await run(program, ["-credentials", file, "-json", name], {
        env: { CLARIFY_EXAMPLE_STATUS_ITEM_ID: item, CLARIFY_EXAMPLE_PUBLISH_INTEGRATION_ID: integration },
      })
    ).stderr;
  await routine("devdata/save-signals");
  const call = async (method: string, params: object) =>
    (await service.call(method, { integration, ...params }, { version: "1.1" })).body?.result;
  const signal = (await call("admin.selectSignals", {}))?.["data"][0].id;
  const meta = { name: "Status", valueType: "enum", sourceType: "aggregation" };
  const published = await call("admin.publishSignals", { itemsBySignal: { [signal]: meta } });
  const id = published?.["itemsBySignal"][signal].id;
  expect(await routine("evaluate/detect-fire", id)).not.toContain("FIRE!");

  await routine("devdata/insert-random");
  expect(await routine("evaluate/detect-fire", id)).toContain("FIRE!");
});
