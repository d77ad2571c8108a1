// A gap that the last notification showed is on disk together with it, so it is known after the agent was killed.
import { cpSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { systemClock } from "../../src/lib/time/clock.ts";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tags = [{ node: `nsu=${lineNamespace};s=Temp` }];

/** A clock on which the delay before the history is read never ends. */
function patient() {
  const clock = systemClock();
  return testRuntime({
    clock: {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms === 2_000 ? 600_000 : ms, signal),
    },
  });
}

test("values discarded by the server's queue are filled although the agent was killed before reading the history", {
  timeout: 120_000,
}, async () => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  await using network = await tcpProxy(server.port);
  const [stateDir, killed] = [own.file("state"), own.file("killed")];
  const options = {
    url: `opc.tcp://127.0.0.1:${network.port}`,
    security: { mode: "none" },
    subscription: { publishing: "700ms", queue: 2 },
  };
  const burst: number[] = [];
  const later = [1_001, 1_002, 1_003];
  {
    await using line = collect(await openOpcuaSource({ stateDir, options, tags, runtime: patient() }));
    await eventually(() => line.values(0).length > 0);
    await eventually(async () => {
      const value = 101 + burst.length;
      burst.push(value);
      server.set("Temp", value);
      await eventually(() => server.temps.has(value));
      return line.gaps.some(({ cause }) => cause === "overflow");
    }, 30_000);
    // The notification with the overflow is acknowledged by the publish requests that follow. The server will not
    // repeat it.
    for (const value of later) {
      server.set("Temp", value);
      await line.reading((reading) => reading.value === value);
    }
    cpSync(stateDir, killed, { recursive: true });
    network.cut();
    await line.failure;
  }
  rmSync(stateDir, { recursive: true });
  cpSync(killed, stateDir, { recursive: true });
  network.restore();
  await using line = collect(await openOpcuaSource({ stateDir, options, tags }));
  expect(line.source.details?.()).toMatchObject({ subscription: "kept" });
  await eventually(() => line.gaps.some(({ state }) => state === "filled"), 30_000);
  expect(line.readings.filter(({ historical }) => historical).length).toBeGreaterThan(0);
  expect(line.readings.every(({ value }) => [20, ...burst, ...later].includes(Number(value)))).toBe(true);
});
