// What random network outages and silences cost the OPC UA source: node test/bench/opcua/cuts.ts [seed] [cuts].
// Each value that the server sampled must arrive or be counted as lost. A third of the deliveries is never
// acknowledged.
import { systemClock } from "../../../src/lib/time/clock.ts";
import { hurriedClock } from "../../support/hurried-clock.ts";
import { lineNamespace, opcuaServer } from "../../support/opcua-server.ts";
import { openOpcuaSource } from "../../support/opcua-source.ts";
import { seeded, testRuntime } from "../../support/runtime.ts";
import { tcpProxy } from "../../support/tcp-proxy.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const [seed = 1, cuts = 60] = process.argv.slice(2).map(Number);
const random = seeded(seed);
using folder = temporaryFolder();
await using server = await opcuaServer({ folder: folder.file("server") });
await using network = await tcpProxy(server.port);
const clock = systemClock();
/** Silence is detected after a quarter of the usual time. */
const runtime = testRuntime({ clock: hurriedClock(4) });
const sleep = (ms: number) => clock.sleep(ms, new AbortController().signal);
const setup = {
  stateDir: folder.file("state"),
  options: {
    url: `opc.tcp://127.0.0.1:${network.port}`,
    security: { mode: "none" },
    timeout: "2s",
    subscription: { keepAlive: "500ms", bridge: "60s" },
    backfill: "off",
  },
  tags: [{ node: `nsu=${lineNamespace};s=Count` }],
  runtime,
};

const stop = new AbortController();
const arrived = new Set<unknown>();
const count = (counts: Map<string, number>, what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);
const origins = new Map<string, number>();
const failures = new Map<string, number>();
const reading = (async () => {
  while (!stop.signal.aborted) {
    try {
      await using source = await openOpcuaSource(setup);
      count(origins, String(source.details?.().subscription));
      for await (const delivery of source.deliveries(stop.signal)) {
        for (const { value } of delivery.readings) arrived.add(value);
        if (random() < 0.67) delivery.ack();
      }
    } catch (error) {
      count(failures, String(error).replaceAll(/\d+/g, "#").slice(0, 80));
    }
    await sleep(20 + 100 * random());
  }
})();

let value = 0;
const writing = setInterval(() => server.set("Count", ++value), 70);
while (arrived.size === 0) await sleep(100);
for (let i = 0; i < cuts; i++) {
  await sleep(1_500 * random());
  if (random() < 0.3) {
    network.muteDevice();
    await sleep(3_000 * random());
  }
  network.cut();
  await sleep(800 * random());
  network.restore();
}
clearInterval(writing);
await sleep(8_000);
stop.abort();
await reading;
console.log({
  seed,
  cuts,
  sampled: server.counted.size,
  missing: [...server.counted].filter((sampled) => sampled > 0 && !arrived.has(sampled)),
  lostAndCounted: runtime.metric("source_opcua_lost_notifications_total"),
  fetchedAgain: runtime.metric("source_opcua_republished_notifications_total"),
  overflows: runtime.metric("source_opcua_overflows_total"),
  sessions: server.sessions,
  origins,
  failures,
});
