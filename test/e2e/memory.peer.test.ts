// The memory cost of many tags: an agent that reads 100,000 tags must fit into the 512 MB of its systemd unit.
import { readFileSync } from "node:fs";
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
