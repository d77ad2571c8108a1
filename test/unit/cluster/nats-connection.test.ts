// What the log has of a connection to the cluster. `integration/cluster/nats-link` tests it on real servers.
import { expect, test } from "vitest";
import { NatsLink } from "../../../src/cluster/connection/nats-connection.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { eventually } from "../../support/eventually.ts";
import { natsStub } from "../../support/nats-stub.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

test("servers that forbid the heartbeats give a line in ten seconds, with the number of those left out", async () => {
  using server = await natsStub("a", () => "-ERR 'Permissions Violation for Publish to \"beat\"'\r\n");
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using link = new NatsLink(clusterOptions.parse({ servers: [server.url] }), "test", runtime);
  await link.connected(AbortSignal.timeout(30_000));
  const publish = () =>
    link.use("publish", async ({ connection }) => {
      connection.publish("beat");
      await connection.flush();
    });
  const lines = () => runtime.lines.filter(({ message }) => message === "error of the cluster");
  for (let i = 0; i < 3; i++) await publish();
  await eventually(() => lines().length > 0);
  await clock.advance(10_000);
  await publish();
  await eventually(() => lines().length > 1);

  expect(lines().map(({ level, fields }) => [level, fields["suppressed"]])).toEqual([
    ["warn", undefined],
    ["warn", 2],
  ]);
});
