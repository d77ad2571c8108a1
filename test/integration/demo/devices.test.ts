// The agent's own drivers read the simulated devices with the configuration that the devices provide.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { EpochMicros, InputId } from "../../../src/core/point.ts";
import type { Runtime } from "../../../src/core/runtime.ts";
import { compare } from "../../../src/demo/comparison.ts";
import { openDevices } from "../../../src/demo/devices.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import { eventually } from "../../support/eventually.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const tags = { mqtt: 4, modbus: 14, opcua: 5 };

test("every value that the devices served has arrived once, and no other", async () => {
  const runtime = testRuntime();
  const stopping = new AbortController();
  await using devices = await openDevices({ tags, everyMs: 150 }, runtime, stopping.signal);
  const stored = new Map<InputId, Map<number, EpochMicros[]>>();
  const reading = read(devices.configuration, stored, runtime, stopping.signal);

  expect(devices.inputs).toHaveLength(23);
  const enough = () => devices.inputs.every((input) => (devices.delivered().get(input)?.size ?? 0) >= 5);
  await Promise.race([eventually(enough, 20_000), reading]);
  await devices.stop(stopping.signal);
  const delivered = devices.delivered();
  const count = devices.count;
  stopping.abort();
  await reading;

  const comparison = compare(delivered, stored);
  expect(comparison.examples).toEqual([]);
  expect(comparison).toMatchObject({ read: count, stored: count, missing: 0, twice: 0, foreign: 0, exact: true });
  expect([...delivered.keys()].toSorted()).toEqual(devices.inputs.toSorted());
  // The time is the time in the payload, in whole milliseconds, not the time of arrival.
  expect(
    [...(stored.get(inputOf("demo.room1.temp"))?.values() ?? [])].flat().filter((time) => time % 1_000 > 0),
  ).toEqual([]);
  // Values of each wire type arrive: quarters of a float, a counter beyond 32 bits, negative numbers.
  expect(stored.get(inputOf("demo.meter2.power"))?.has(1.75)).toBe(true);
  expect(stored.get(inputOf("demo.meter1.pulses"))?.has(5_000_000_007)).toBe(true);
  expect(
    stored
      .get(inputOf("demo.line.Runtime1"))
      ?.keys()
      .every((value) => value >= 3_000_000_000),
  ).toBe(true);
  expect(stored.get(inputOf("demo.meter1.temperature"))?.has(-20)).toBe(true);
});

test.each([["aedes node-opcua-server"], ["aedes"]])(
  "without %s it says which packages to install",
  async (packages) => {
    const script = fileURLToPath(new URL("../../fixtures/demo/without-packages.ts", import.meta.url));
    const { stdout } = await promisify(execFile)(process.execPath, [script, ...packages.split(" ")]);
    expect(stdout).toBe(
      `PACKAGE_MISSING the simulated devices need packages that are not installed: npm install ${packages}`,
    );
  },
);

/** Reads every source as the agent does until `signal` aborts: each reading is mapped, stored and then acknowledged. */
async function read(
  configuration: string,
  stored: Map<InputId, Map<number, EpochMicros[]>>,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<void> {
  using folder = temporaryFolder();
  const service = "{ url: http://127.0.0.1:1/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: p } } }";
  const text = `version: 1\nagent: { name: demo, dataDir: ${folder.path} }\nservice: ${service}\n${configuration}`;
  await writeFile(folder.file("tagferry.yaml"), text);
  const { sources, warnings } = await loadConfig(folder.file("tagferry.yaml"), processEnvironment());
  expect(warnings.map(({ path }) => path)).toEqual(["service.auth.basic.password"]);
  const catalog = { describe: () => {} };
  await Promise.all(
    sources.map(async ({ name, driver, options, tags: sourceTags, rules }) => {
      const config = { name, agent: "demo", stateDir: folder.file(name), options, tags: sourceTags };
      await using source = await driver.open(config, runtime, signal);
      using mapping = openMapping({ source: name, rules, catalog }, runtime);
      for await (const delivery of source.deliveries(signal)) {
        for (const { input, time, value } of mapping.map(delivery)) {
          const values = stored.get(input) ?? new Map<number, EpochMicros[]>();
          stored.set(input, values);
          const times = values.get(value) ?? [];
          values.set(value, times);
          if (!times.includes(time)) times.push(time);
        }
        delivery.ack();
      }
    }),
  );
}

const inputOf = (text: string) => text as InputId; // the texts here are Input IDs
