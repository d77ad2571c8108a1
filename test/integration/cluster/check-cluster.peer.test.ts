// What `check --online` reports about the servers of a cluster.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { natsHeartbeats } from "../../../src/cluster/connection/nats-connection.ts";
import { Membership } from "../../../src/cluster/members/membership.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { systemClock } from "../../../src/lib/time/clock.ts";
import { command } from "../../support/command.ts";
import { natsWorld } from "../../support/nats-world.ts";
import { testRuntime } from "../../support/runtime.ts";
import { integration, password } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("check --online names each server, those that do not answer, and replicas that have no place", async () => {
  using folder = temporaryFolder();
  await using world = await natsWorld({ count: 1 });
  const file = folder.file("tagferry.yaml");
  const [server] = world.cluster.urls;
  const check = async (servers: readonly (string | undefined)[], more = "") => {
    writeFileSync(
      file,
      `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "${password}" } } }
cluster: { servers: ${JSON.stringify(servers)}${more} }
sources: { waves: { type: simulator, tags: [{ input: a, wave: counter, every: 1s }] } }
`,
    );
    const { stdout, status } = await command(["check", "--online", "-c", file]);
    return { stdout, status };
  };

  const one = await check([server], ", replicas: 1");
  expect(one.stdout).toMatch(/n1, nats-server 2\.\d+\.\d+; sync_interval cannot be read; the service is not asked/);
  expect(one.status).toBe(0);
  const three = await check([server, "nats://127.0.0.1:9"]);
  expect(three.stdout).toContain("n1, nats-server 2.");
  expect(three.stdout).toMatch(/nats:\/\/127\.0\.0\.1:9: .*refused/);
  expect(three.stdout).toContain("replicas: 3 needs as many servers, 1 reached");

  // The clock of another agent is an hour ahead.
  const right = systemClock();
  const clock = { ...right, now: () => epochMicros(right.now() + 3_600e6) };
  const heartbeats = natsHeartbeats(world.link, integration, clock);
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  const runtime = testRuntime({ clock });
  const member = new Membership({ state: world.state, heartbeats, node: "gw2", report }, runtime);
  const stop = new AbortController();
  const running = member.run(stop.signal);
  expect((await check([server], ", replicas: 1")).stdout).toContain(
    "the clock of gw2 is 3600 s ahead of this machine's",
  );
  stop.abort();
  await running;
});
