// When tags were not recorded: the answer of a running agent, and of the data directory of one that is gone.
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { gapListSchema } from "../../src/agent/gaps/gap.ts";
import { gapFolder, readGapFolder } from "../../src/agent/gaps/gap-file.ts";
import { openGapRecord } from "../../src/agent/gaps/gap-record.ts";
import { sourceGaps } from "../../src/agent/gaps/source-gaps.ts";
import { AgentError } from "../../src/core/errors.ts";
import { openWeb } from "../../src/web/server.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { tagferry } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { has } from "../support/platform.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { statusWith } from "../support/status.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Records two outages of a source and one bad tag of it. The time is 2026-01-01T00:02:20Z. */
async function recorded(dataDir: string) {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const record = await openGapRecord(gapFolder(dataDir), ["line3"], runtime);
  const source = sourceGaps(record, { name: "line3", tags: 3 }, runtime);
  source.online({});
  await clock.advance(10_000);
  source.delivered({ readings: [] });
  source.lost(new AgentError("SOURCE_UNREACHABLE", "10.0.3.5:4840 does not answer\u001b[31m"));
  await clock.advance(70_000);
  source.online({ recovery: { how: "kept", by: "the server had kept the subscription" } });
  source.failed("line3.temp", undefined, "bad", "the server reports BadSensorFailure");
  source.delivered({ readings: [] });
  await clock.advance(60_000);
  return { clock, record, source };
}
const end = async ({ record, source }: Awaited<ReturnType<typeof recorded>>) => {
  source[Symbol.dispose]();
  await record[Symbol.asyncDispose]();
};
const configOf = (folder: string, port: number) => `version: 1
agent: { name: gw1, dataDir: ${folder}/data }
http: { listen: "127.0.0.1:${port}" }
service: { url: http://127.0.0.1:1/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources: {}
`;

test("gaps of a running agent are listed with time, duration, tags, cause and outcome", async () => {
  using folder = temporaryFolder();
  const agent = await recorded(`${folder.path}/data`);
  await using web = await openWeb(
    {
      listen: { host: "127.0.0.1", port: 0 },
      snapshot: () => statusWith(),
      gaps: (sinceMs, most) => agent.record.list(agent.clock.now() - sinceMs * 1_000, most),
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
    },
    testRuntime(),
    new AbortController().signal,
  );

  const { status, stdout } = await tagferry(["gaps", "--url", web.url]);
  const short = await tagferry(["gaps", "--url", web.url, "--since", "30s", "--json"]);
  await end(agent);

  expect(stdout).toBe(`  from                  to                    how long  source  tags        state   cause
  2026-01-01T00:01:20Z                        1m        line3   line3.temp  open    no usable value: the server reports BadSensorFailure
  2026-01-01T00:00:10Z  2026-01-01T00:01:20Z  1m10s     line3   all 3       filled  not connected: 10.0.3.5:4840 does not answer\\u001b[31m; the server had kept the subscription
2 gaps in the last 7d, 1 open, 0 with values lost (${web.url})
`);
  expect(status).toBe(0);
  expect(JSON.parse(short.stdout).gaps).toMatchObject([{ inputs: ["line3.temp"], state: "open", cause: "bad" }]);
});

test.runIf(has.signals)(
  "a gap of a Modbus source lasts until its first value, not only until the device accepts a connection",
  async () => {
    using folder = temporaryFolder();
    await using device = await modbusDevice();
    const unit = device.unit(1);
    const configuration = `version: 1
agent: { name: gw1, dataDir: ${folder.path}/data, ownSignals: off }
http: { listen: "127.0.0.1:0" }
service: { url: http://127.0.0.1:1/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  meter: { type: modbus, url: "${device.url}", timeout: 60s, tags: [{ input: a, at: "hr:0", every: 200ms }] }
`;
    const start = () => startAgent({ folder: folder.path, configuration });
    {
      await using agent = await start();
      await eventually(async () => (await agent.status()).sources[0]!.readings > 0);
      await agent.stop();
    }
    unit.silent = true;
    const before = device.requests.length;
    await using agent = await start();
    const rows = async () => {
      const { stdout } = await tagferry(["gaps", "--json", "--url", agent.page]);
      return gapListSchema.parse(JSON.parse(stdout)).gaps.map(({ cause, state }) => [cause, state]);
    };
    await eventually(() => device.requests.length > before);
    expect(await rows()).toEqual([["agentDown", "open"]]);
    unit.silent = false;
    device.disconnect();
    // What was not answered is bad until then.
    await eventually(async () => (await rows()).every(([, state]) => state === "lost"));
    expect((await rows()).at(-1)).toEqual(["agentDown", "lost"]);
  },
);

test.runIf(has.signals)(
  "a unit that does not answer after a restart has a gap of its own, while another one behind the same connection is read",
  async () => {
    using folder = temporaryFolder();
    await using device = await modbusDevice();
    const [, slow] = [device.unit(1), device.unit(2)];
    const configuration = `version: 1
agent: { name: gw1, dataDir: ${folder.path}/data, ownSignals: off }
http: { listen: "127.0.0.1:0" }
service: { url: http://127.0.0.1:1/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  meters:
    type: modbus
    url: "${device.url}"
    timeout: 15s
    tags: [{ input: a, unit: 1, at: "hr:0", every: 200ms }, { input: b, unit: 2, at: "hr:0", every: 200ms }]
`;
    const start = () => startAgent({ folder: folder.path, configuration });
    const rowsOf = async ({ page }: AgentProcess, input: string) => {
      const { stdout } = await tagferry(["gaps", "--json", "--url", page]);
      const { gaps } = gapListSchema.parse(JSON.parse(stdout));
      return gaps.toReversed().filter(({ inputs }) => inputs.length === 0 || inputs.includes(input));
    };
    {
      await using agent = await start();
      await eventually(async () => (await agent.status()).sources[0]!.readings > 2);
      await agent.stop();
    }
    slow.silent = true;
    {
      await using agent = await start();
      // Either unit may be asked first. The row comes after 5 s then, or after the time-out. On disk it survives a kill.
      await eventually(() => readFileSync(folder.file("data/gaps/record.ndjson"), "utf8").includes('"bad"'));
      expect(await rowsOf(agent, "a")).toMatchObject([{ cause: "agentDown", state: "lost" }]);
      expect((await rowsOf(agent, "b"))[1]).toMatchObject({ inputs: ["b"], cause: "bad", state: "open" });
      await agent.kill();
    }
    slow.silent = false;
    await using agent = await start();
    await eventually(async () => (await rowsOf(agent, "b")).every(({ to }) => to !== undefined));
    const rows = await rowsOf(agent, "b");
    expect(rows.map(({ cause }) => cause).toSorted()).toEqual(["agentDown", "agentDown", "bad"]);
    // Each begins before those before it have ended.
    let end = rows[0]?.from ?? 0;
    for (const { from, to = 0 } of rows) {
      expect(from).toBeLessThanOrEqual(end);
      end = Math.max(end, to);
    }
  },
);

test.runIf(has.signals)(
  "gaps of a stopped agent are read from its data directory, and its downtime is one of them",
  async () => {
    using folder = temporaryFolder();
    await end(await recorded(`${folder.path}/data`));
    writeFileSync(`${folder.path}/tagferry.yaml`, configOf(folder.path, 1));

    const { status, stdout } = await tagferry(["gaps", "-c", `${folder.path}/tagferry.yaml`, "--since", "36500d"]);

    expect(stdout.split("\n").map((line) => line.replaceAll(/ {2,}/g, " | "))).toEqual([
      expect.stringContaining(" | from | to | how long"),
      expect.stringMatching(/2026-01-01T00:02:20Z \| \w+ \| line3 \| all \| open \| agent down: the agent was stopped/),
      expect.stringMatching(
        /00:01:20Z \| 2026-01-01T00:02:20Z \| 1m \| line3 \| line3.temp \| lost \| no usable value/,
      ),
      expect.stringMatching(/00:00:10Z \| 2026-01-01T00:01:20Z \| 1m10s \| line3 \| all 3 \| filled \| not connected/),
      expect.stringMatching(/^3 gaps in the last .*, 1 open, 1 with values lost \(.*data\/gaps, no agent answers\)$/),
      "",
    ]);
    expect(status).toBe(0);
  },
);

test("a killed agent records its downtime", async () => {
  using folder = temporaryFolder();
  const configuration = configOf(folder.path, 0).replace(
    "sources: {}",
    "sources: { waves: { type: simulator, tags: [{ input: sine, every: 1s }] } }",
  );
  {
    await using agent = await startAgent({ folder: folder.path, configuration });
    await eventually(
      async () => (await readGapFolder(gapFolder(`${folder.path}/data`))).life?.sources.waves !== undefined,
      30_000,
    );
    await agent.kill();
  }
  await using agent = await startAgent({ folder: folder.path, configuration });
  await eventually(async () => (await agent.status()).sources[0]?.state === "online", 30_000);

  const { stdout } = await tagferry(["gaps", "--url", agent.page, "--json"]);

  const { gaps } = gapListSchema.parse(JSON.parse(stdout));
  expect(gaps).toHaveLength(1);
  expect(gaps[0]).toMatchObject({
    source: "waves",
    cause: "agentDown",
    reason: "the agent was killed, or the machine went down",
    state: "lost",
    outcome: "what happened meanwhile is kept nowhere",
  });
  expect((await agent.status()).gaps).toMatchObject({
    open: 0,
    dayLost: 1,
    lastLost: { source: "waves", from: gaps[0]?.from, to: gaps[0]?.to, cause: "agentDown" },
  });
});

test("without an agent and a configuration gaps prints how to name one", async () => {
  const { status, stderr } = await tagferry(["gaps", "--url", "http://127.0.0.1:1"]);
  expect(stderr).toContain("no agent answers at http://127.0.0.1:1");
  expect(status).toBe(69);
});
