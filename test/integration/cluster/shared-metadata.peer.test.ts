// Points that a stopped agent passed to the cluster arrive with their metadata.
// The agent that delivers them does not have their signals in its configuration.
import { expect, test } from "vitest";
import { openAgent } from "../../../src/agent/agent.ts";
import { load, withPassword } from "../../support/config.ts";
import { eventually } from "../../support/eventually.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";
import { integration, password, testService } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const never = new AbortController().signal;
const patience = 60_000;

test("the agent that delivers saves the signals of an agent that is off, and reports only what no agent has", async () => {
  using folder = temporaryFolder();
  await using servers = await openNatsServers({ count: 1 });
  await using service = await testService();
  await service.call("integration.saveSignals", { integration, inputs: { foreign: { name: "x" } }, createOnly: false });
  await service.pause();

  const agent = async (name: string, input: string, signal: string) => {
    const text = `version: 1
agent: { name: ${name}, dataDir: ${JSON.stringify(folder.file(name))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
cluster: { servers: ${JSON.stringify(servers.urls)}, replicas: 1 }
sources: { waves: { type: simulator, tags: [{ input: ${input}, wave: counter, every: 100ms, signal: ${signal} }] } }
`;
    return await openAgent(await load(text, withPassword), { version: "1" }, testRuntime(), never);
  };
  {
    await using first = await agent("gw.2", "boiler/t", "{ name: Boiler, engUnit: °C, labels: { hall: [north] } }");
    await eventually(() => {
      const { buffer, cluster } = first.status();
      return buffer.appendedPoints > 5 && buffer.unsettledPoints === 0 && cluster?.forwardLagMs === 0;
    }, patience);
  }
  await using other = await agent("gw.1", "pump/n", "{ name: Pump, engUnit: rpm }");
  await eventually(() => other.cluster()?.delivers === "gw.1", patience);
  await service.resume();

  const stored = async () => {
    const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
    const views = Object.values<{ inputId: string; name: string; engUnit: string }>(body?.result?.signals ?? {});
    return Object.fromEntries(views.map(({ inputId, name, engUnit }) => [inputId, `${name} ${engUnit}`]));
  };
  await eventually(async () => Object.keys(await stored()).length === 3, patience);
  expect(await stored()).toEqual({ "boiler/t": "Boiler °C", "pump/n": "Pump rpm", foreign: "x " });
  const watched = await eventually(() => other.status().upload.signals?.checkedAt && other.status().upload, patience);
  expect(watched.signals).toMatchObject({ unconfigured: 1, unconfiguredInputs: ["foreign"] });
});
