// The memory cost of many tags: an agent that reads 100,000 tags must fit into the 512 MB of its systemd unit.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { residentMegabytes } from "../support/resident-memory.ts";
import { integration, password, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const inputs = 100_000;
const limitMegabytes = 512;
/** Reading this configuration takes about 10 s of processor time. */
const readyWithinMs = 300_000;

/** The variables that the unit sets for the C library. */
const unit = readFileSync(join(import.meta.dirname, "../../systemd/tagferry.service"), "utf8");
const env = Object.fromEntries(
  [...unit.matchAll(/(MALLOC_\w+)=(\w+)/g)].map(([, name = "", value = ""]) => [name, value]),
);

const configuration = (folder: string, service: string, broker: string) => `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(`${folder}/data`)} }
service: { url: "${service}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
${broker}
    tags:
${Array.from(
  { length: inputs },
  (_, i) =>
    `      - { input: "plant.tag${i}", topic: "plant/tag${i}", value: $.v, time: { at: $.ts, format: unixMs } }`,
).join("\n")}
`;

test("an agent with 100,000 configured tags stays within 512 MB while it starts", { timeout: 700_000 }, async () => {
  using folder = temporaryFolder();
  const offline = configuration(folder.path, "http://127.0.0.1:1/v1", "    url: mqtt://127.0.0.1:1");
  await using agent = await startAgent({ folder: folder.path, configuration: offline, env, readyWithinMs });

  await eventually(() => residentMegabytes(agent.pid).now < 400, 60_000);
  expect(residentMegabytes(agent.pid).most).toBeLessThan(limitMegabytes);
});

test("an agent that stores and delivers a value of each of 100,000 configured tags stays within 512 MB", {
  timeout: 900_000,
}, async () => {
  using folder = temporaryFolder();
  await using broker = await openMosquitto();
  await using service = await testService();
  const { url, username, password: secret } = broker;
  const source = `    url: ${url}\n    username: ${username}\n    password: ${secret}`;
  await using agent = await startAgent({
    folder: folder.path,
    configuration: configuration(folder.path, service.url, source),
    env,
    readyWithinMs,
  });
  const view = async () => await (await fetch(new URL("/api/view", agent.page))).text();
  await eventually(async () => (await view()).includes(`"subscriptions":${inputs}`), 300_000);

  const publisher = await broker.publisher();
  for (let i = 0; i < inputs; i++) {
    const sent = publisher.publishAsync(`plant/tag${i}`, `{"ts":${Date.now()},"v":${i / 7}}`, { qos: 1 });
    // At most this many in flight.
    if (i % 1_000 === 999) await sent;
  }

  const delivered = async () => {
    const metrics = await (await fetch(new URL("/metrics", agent.page))).text();
    const appended = Number(/^tagferry_buffer_appended_points_total\S* (\d+)/m.exec(metrics)?.[1]);
    return appended >= inputs && /^tagferry_buffer_unsettled_points\S* 0$/m.test(metrics);
  };
  await eventually(delivered, 300_000);
  expect(residentMegabytes(agent.pid).most).toBeLessThan(limitMegabytes);
});

test("sending 32 MiB of refused points again takes less than 150 MB", { timeout: 600_000 }, async () => {
  using folder = temporaryFolder();
  const data = folder.file("data");
  mkdirSync(join(data, "upload"), { recursive: true, mode: 0o700 });
  const files = ["rejects.1.ndjson", "rejects.ndjson"];
  for (const [i, name] of files.entries())
    writeFileSync(join(data, "upload", name), refusedLines(i * perFile), { mode: 0o600 });
  await using service = await testService();
  await using agent = await startAgent({
    folder: folder.path,
    configuration: `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(data)}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources: { demo: { type: simulator, tags: [{ input: demo }] } }
`,
    env,
    readyWithinMs,
  });
  const post = async () => {
    const token = readFileSync(join(data, "control.token"), "utf8").trim();
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    return (await fetch(new URL("/api/rejects/retry", agent.page), { method: "POST", headers, body: "{}" })).ok;
  };
  const refused = async () => (await agent.status()).upload.refusedPoints;
  await eventually(async () => (await refused()) === 2 * perFile, 60_000);
  const before = residentMegabytes(agent.pid).most;

  await eventually(post, 60_000);
  await eventually(async () => (await refused()) === 0, 300_000);

  expect(residentMegabytes(agent.pid).most - before).toBeLessThan(150);
});

const perFile = 88_000;

/** 16 MiB. */
function refusedLines(first: number): string {
  const line = (n: number) => {
    const time = new Date(Date.UTC(2026, 0, 1) + Math.floor(n / 500) * 1_000).toISOString();
    const reason = "Invalid params (-32602, trace 2ab1c2d3e4f5): too new";
    return JSON.stringify({
      at: time,
      input: `hall.sensor.temperature.${n % 500}`,
      time,
      value: n,
      code: -32602,
      reason,
    });
  };
  return `${Array.from({ length: perFile }, (_, i) => line(first + i)).join("\n")}\n`;
}
