// How the agent reacts to operating system signals.
import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (folder: string) => `version: 1
agent: { name: signals, dataDir: ${JSON.stringify(`${folder}/data`)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: secret } } }
http: { listen: "127.0.0.1:0" }
sources: { waves: { type: simulator, tags: [{ input: sine, wave: sine, period: 5s, min: 0, max: 1, every: 50ms }] } }
`;

const twoSources = (folder: string, second: string, maxLag: string) => `version: 1
agent: { name: signals, dataDir: ${JSON.stringify(`${folder}/data`)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, maxLag: ${maxLag}, auth: { basic: { password: secret } } }
http: { listen: "127.0.0.1:0" }
sources:
  a: { type: simulator, tags: [{ input: a.sine, wave: sine, period: 5s, min: 0, max: 1, every: 50ms }] }
  b: { type: simulator, tags: [{ input: ${second}, wave: sine, period: 5s, min: 0, max: 1, every: 50ms }] }
`;

test.runIf(has.signals)(
  "a SIGHUP applies the configuration: changed sources restart, the others continue undisturbed",
  async () => {
    using folder = temporaryFolder();
    const file = folder.file("tagferry.yaml");
    await using agent = await startAgent({
      folder: folder.path,
      configuration: twoSources(folder.path, "b.old", "10m"),
    });
    const readings = async (name: string) =>
      (await agent.status()).sources.find((source) => source.name === name)?.readings ?? 0;
    await eventually(async () => (await readings("a")) > 0 && (await readings("b")) > 0);
    const kept = (await agent.status()).sources.find(({ name }) => name === "a")?.since;

    writeFileSync(file, twoSources(folder.path, "b.new", "20m"));
    process.kill(agent.pid, "SIGHUP");
    const reloaded = await eventually(() => agent.log.find(({ msg }) => msg === "configuration reloaded"));

    expect(reloaded).toMatchObject({ started: [], restarted: ["b"], stopped: [] });
    const warned = await eventually(() => agent.log.find(({ sections }) => sections !== undefined));
    expect(warned).toMatchObject({ sections: ["service"] });
    await eventually(async () =>
      (await agent.status()).tags.some(({ input, value }) => input === "b.new" && value !== undefined),
    );
    const { sources, tags } = await agent.status();
    expect(sources.find(({ name }) => name === "a")?.since).toBe(kept);
    expect(tags.map(({ input }) => input)).not.toContain("b.old");
  },
);

test.runIf(has.signals)(
  "a SIGHUP with an invalid file changes nothing and reports the position of the error",
  async () => {
    using folder = temporaryFolder();
    const good = twoSources(folder.path, "b.old", "10m");
    await using agent = await startAgent({ folder: folder.path, configuration: good });
    await eventually(async () => (await agent.status()).sources.every(({ readings }) => readings > 0));

    writeFileSync(folder.file("tagferry.yaml"), good.replace("wave: sine", "wave: sinus"));
    process.kill(agent.pid, "SIGHUP");
    await eventually(() => agent.log.some(({ msg }) => String(msg).includes("keeping the current one")));

    expect(agent.log.some(({ at }) => /tagferry\.yaml:6:\d+$/.test(String(at)))).toBe(true);
    const before = (await agent.status()).buffer.appendedPoints;
    await eventually(async () => (await agent.status()).buffer.appendedPoints > before);
  },
);

test.runIf(has.signals)(
  "a SIGINT received twice, from the terminal and from npm, ends the agent in order",
  async () => {
    using folder = temporaryFolder();
    await using agent = await startAgent({ folder: folder.path, configuration: configuration(folder.path) });

    process.kill(agent.pid, "SIGINT");
    process.kill(agent.pid, "SIGINT");
    const stopped = agent.stop();

    expect(await stopped).toBe(0);
  },
);
