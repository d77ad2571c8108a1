// An agent at a server that reaches no leader. `integration/cluster` tests the same on real servers.
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { JoinedCluster } from "../../../src/cluster/cluster.ts";
import { clusterOptions } from "../../../src/cluster/options.ts";
import { eventually } from "../../support/eventually.ts";
import { hurriedClock } from "../../support/hurried-clock.ts";
import { testRuntime } from "../../support/runtime.ts";

/** A server that accepts agents and refuses each request, as one without JetStream does: status 503, no responders. */
async function leaderlessServer(name: string) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    const subscriptions: (readonly [prefix: string, id: string])[] = [];
    const about = {
      server_id: name,
      server_name: name,
      version: "2.15.2",
      proto: 1,
      headers: true,
      max_payload: 2 ** 20,
    };
    socket.write(`INFO ${JSON.stringify(about)}\r\n`);
    createInterface({ input: socket }).on("line", (line) => {
      const words = line.split(" ");
      const [verb, subject = "", reply = ""] = words;
      if (verb === "PING") socket.write("PONG\r\n");
      if (verb === "SUB") subscriptions.push([subject.replace(/[*>]$/, ""), words.at(-1) ?? ""]);
      const [, id] = subscriptions.find(([prefix]) => reply.startsWith(prefix)) ?? [];
      if ((verb === "PUB" || verb === "HPUB") && id !== undefined)
        socket.write(`HMSG ${reply} ${id} 16 16\r\nNATS/1.0 503\r\n\r\n\r\n`);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `nats://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

test("an agent leaves a server that reaches no leader for 15 s", async () => {
  using a = await leaderlessServer("a");
  using b = await leaderlessServer("b");
  const runtime = testRuntime({ clock: hurriedClock(20) });
  const options = clusterOptions.parse({ servers: [a.url, b.url] });
  const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
  await using cluster = new JoinedCluster({ options, integration: "plant", node: "gw1", report }, runtime);
  const first = await eventually(() => cluster.view.server);

  expect(await eventually(() => [cluster.view.server].find((name) => name && name !== first))).toBeDefined();
});
