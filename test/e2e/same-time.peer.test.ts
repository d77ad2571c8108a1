// Several values of one input with the same time: mosquitto, the agent as a process, and a service that stores one
// value per input and time.
import { expect, test } from "vitest";
import { gapListSchema } from "../../src/agent/gaps/gap.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { accepts, answers, ScriptedService } from "../support/scripted-service.ts";
import { integration, password as servicePassword } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const topics = Array.from({ length: 50 }, (_, i) => `t${i}`);

test("bursts, coarse times, a kept session and a late correction end with the last value", {
  timeout: 240_000,
}, async () => {
  using folder = temporaryFolder();
  await using service = await ScriptedService.open();
  await using broker = await openMosquitto();
  const publisher = await broker.publisher();
  const configuration = `version: 1
agent: { name: drill, dataDir: ${JSON.stringify(`${folder.path}/data`)} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${servicePassword}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  hall:
    type: mqtt
    url: ${broker.url}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "burst.{tag}", topic: "burst/{tag}" }
      - { input: "timed.{tag}", topic: "timed/{tag}", value: $.v, time: { at: $.t, format: unixS } }
      - { input: "kept.{tag}", topic: "kept/{tag}", value: $.v, time: { at: $.t, format: unixS }, sameTime: keep }
`;
  const options = { folder: folder.path, configuration };
  const now = Math.floor(Date.now() / 1_000);
  const publish = (topic: string, payload: string) => publisher.publishAsync(topic, payload, { qos: 1 });
  const timed = (topic: string, t: number, v: number) => publish(topic, JSON.stringify({ t, v }));
  /** The stored values of an input by time. */
  const stored = (input: string) =>
    [...service.stored]
      .filter(([key]) => key.startsWith(`${input} `))
      .map(([key, value]) => [key.replace("Z", ""), value] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, value]) => value);
  const delivered = (agent: AgentProcess, points: number) =>
    eventually(async () => {
      const { buffer } = await agent.status();
      return buffer.appendedPoints >= points && buffer.unsettledPoints === 0;
    }, 60_000);
  const online = (agent: AgentProcess) =>
    eventually(async () => (await agent.status()).sources[0]?.state === "online", 60_000);

  {
    await using agent = await startAgent(options);
    await online(agent);
    await Promise.all(topics.flatMap((topic) => ["1", "0", "1"].map((value) => publish(`burst/${topic}`, value))));
    for (const value of [1, 0, 1]) await timed("timed/lamp", now, value);
    for (let total = 1; total <= 60; total++) {
      await timed("timed/total", now - 60, total);
      await timed("kept/total", now - 60, total);
    }
    await delivered(agent, 150 + 3 + 120);
    expect(topics.filter((topic) => stored(`burst.${topic}`).at(-1) !== 1)).toEqual([]);
    expect(stored("timed.lamp")).toEqual([1]);
    expect(stored("timed.total")).toEqual([60]);
    expect(stored("kept.total")).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));

    service.otherwise = answers(503);
    for (const topic of topics) await timed(`timed/${topic}`, now, 1);
    await eventually(async () => (await agent.status()).buffer.unsettledPoints === topics.length);
    await agent.stop();
  }
  const waves = Array.from({ length: 500 }, (_, i) => [20, 21, 22, 21][i % 4]!);
  for (const value of waves) await publish("burst/kept", String(value));
  {
    await using agent = await startAgent(options);
    await online(agent);
    for (const topic of topics) await timed(`timed/${topic}`, now, 2);
    await eventually(
      async () => (await agent.status()).buffer.unsettledPoints === 2 * topics.length + waves.length,
      60_000,
    );
    service.otherwise = accepts;
    await delivered(agent, 0);
    expect(topics.filter((topic) => stored(`timed.${topic}`).join() !== "2")).toEqual([]);
    expect(stored("burst.kept")).toEqual(waves);
    const answer = await fetch(new URL("/api/gaps?since=1d&most=100", agent.page));
    const { gaps } = gapListSchema.parse(await answer.json());
    expect(gaps).toMatchObject([{ cause: "agentDown", state: "filled", outcome: "the broker had kept the session" }]);
    expect((await agent.status()).buffer.losses).toEqual([]);
    await agent.stop();
  }
});
