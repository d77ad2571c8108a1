// One message of 250 MB, the most that mosquitto accepts, among other traffic.
// The agent must not hold it in memory, must not receive it again and again, and must store all other messages.
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { residentMegabytes } from "../support/resident-memory.ts";
import { integration, password as servicePassword, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const bigBytes = 250_000_000;
/** The limit of the agent's peak resident memory, in MB. The unit's `MemoryMax` is 512. */
const bound = 300;

test("a QoS 1 message of 250 MB is skipped, acknowledged and counted in bounded memory, and all others are stored", {
  timeout: 240_000,
}, async () => {
  using folder = temporaryFolder();
  await using service = await testService({ throttle: "queue" });
  await using broker = await openMosquitto();
  const configuration = `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(`${folder.path}/data`)} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${servicePassword}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  hall:
    type: mqtt
    url: ${broker.url}
    protocolVersion: 4
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "hall.{tag}", topic: "hall/{tag}" }
`;
  await using agent = await startAgent({ folder: folder.path, configuration });
  await eventually(async () => (await agent.status()).sources[0]?.state === "online");
  const publisher = await broker.publisher();
  const around = 200;
  const payload = Buffer.alloc(bigBytes, "x");
  const big = publisher.publishAsync("hall/big", payload, { qos: 1 });
  for (let i = 0; i < around; i++) await publisher.publishAsync(`hall/t${i % 10}`, String(i), { qos: 1 });
  await big;
  for (let i = 0; i < around; i++) await publisher.publishAsync(`hall/t${i % 10}`, String(around + i), { qos: 1 });

  await eventually(async () => {
    const { buffer, tags } = await agent.status();
    const last = tags.filter(({ value }) => typeof value === "number" && value >= 2 * around - 10);
    return last.length === 10 && buffer.unsettledPoints === 0;
  }, 120_000);

  const { sources, tags, buffer } = await agent.status();
  expect(sources[0]).toMatchObject({ state: "online", details: { lastOversized: /^hall\/big: 250000000 bytes/ } });
  expect(tags.find(({ input }) => input === "hall.big")).toMatchObject({ quality: "bad" });
  // The reading of hall.big, which is refused, is stored as one of the points.
  expect(buffer.appendedPoints).toBeGreaterThanOrEqual(2 * around);
  const metrics = await (await fetch(new URL("/metrics", agent.page))).text();
  expect(metrics).toMatch(/tagferry_source_mqtt_oversized_messages_total\{[^}]*\} 1$/m);
  expect(residentMegabytes(agent.pid).most).toBeLessThan(bound);
  // The broker does not deliver it again to a client that resumes the session.
  await agent.stop();
  await using again = await startAgent({ folder: folder.path, configuration });
  await publisher.publishAsync("hall/after", "1", { qos: 1 });
  await eventually(async () =>
    (await again.status()).tags.some(({ input, value }) => input === "hall.after" && value === 1),
  );
  expect((await again.status()).sources[0]?.details).not.toHaveProperty("lastOversized");
  expect(residentMegabytes(again.pid).most).toBeLessThan(bound);
});
