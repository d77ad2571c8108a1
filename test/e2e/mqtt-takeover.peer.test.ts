// Two clients use one client identifier at mosquitto. Its log shows each takeover with its time.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { type Mosquitto, openMosquitto } from "../support/mosquitto.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const clientId = "press-4";
const takenOver = /another client (took over the session )?with the same client identifier/;

test.concurrent.each([
  ["two agents", 5],
  ["two agents", 4],
  ["an agent and a client that comes back at once", 5],
  ["an agent and a client that comes back at once", 4],
] as const)(
  "%s take the session of mosquitto from each other less than once in 10 s once it is named, after a few rounds: MQTT %d",
  async (who, protocolVersion) => {
    await using broker = await openMosquitto();
    using folders = temporaryFolder();
    await using first = await start(folders.file("a"), broker, protocolVersion);
    const second = who === "two agents" ? await start(folders.file("b"), broker, protocolVersion) : undefined;
    await using _rival = second ?? rival(broker, protocolVersion);
    const publisher = await broker.publisher();
    const agents = second ? [first, second] : [first];
    const named = () =>
      agents.flatMap(({ log }) =>
        log.filter(({ code }) => code === "SOURCE_TAKEN_OVER").map(({ time }) => Date.parse(String(time)) / 1_000),
      );
    // Counts from the first SOURCE_TAKEN_OVER on. Before it, both clients reconnect at once. The broker logs whole
    // seconds.
    const begin = await eventually(async () => {
      await publisher.publishAsync("line/1", "1", { qos: 1 });
      return named().length === 0 ? undefined : Math.floor(Math.min(...named()));
    }, 90_000);
    await eventually(async () => {
      await publisher.publishAsync("line/1", "1", { qos: 1 });
      return Date.now() / 1_000 > begin + 32;
    }, 60_000);

    const all = takeovers(broker);
    // An agent reports a takeover after five suspicious closings. The limit allows for two agents that each count five,
    // or for a rival that reconnects after each.
    expect(all.filter((at) => at <= begin + 1).length).toBeLessThan(14);
    expect(all.filter((at) => at > begin + 1 && at <= begin + 31).length).toBeLessThan(3);
    // One of two agents has the session. The other one waits and shows what it waits for.
    const { agent, folder, source } = await eventually(async () => {
      for (const [i, each] of agents.entries()) {
        const { sources } = await each.status();
        const [at] = sources;
        if (at?.error !== undefined && takenOver.test(at.error))
          return { agent: each, folder: i === 0 ? "a" : "b", source: at };
      }
      return undefined;
    }, 30_000);
    expect(source.remedy).toContain(`find the other client that uses ${clientId}`);
    // `check --online` with this agent's configuration finds the takeover as well and disconnects no client.
    const online = await command(["check", "--online", "-c", await listening(folders.file(folder), agent)]);
    expect(online.stdout).toMatch(/hall: .*another client (took over the session )?with the same client identifier/);
    expect(online.stdout).toContain(`find the other client that uses ${clientId}`);
    expect(online.status).toBe(69);
    const shown = await command(["status", "--url", agent.page]);
    expect(shown.stdout).toContain(`find the other client that uses ${clientId}`);
    expect(shown.stdout).not.toContain("check address");
    expect(shown.stdout).not.toContain("Data arrives and is delivered.");
  },
  150_000,
);

/** The agent's configuration, with the port that the system assigned to it. */
async function listening(folder: string, { page }: AgentProcess): Promise<string> {
  const file = join(folder, "online.yaml");
  const configuration = readFileSync(join(folder, "tagferry.yaml"), "utf8");
  writeFileSync(file, configuration.replace("127.0.0.1:0", new URL(page).host));
  return file;
}

/** The times, in seconds, at which the broker disconnected a client because another one used its identifier. */
function takeovers({ log }: Mosquitto): number[] {
  return [...log.matchAll(/^(\d+): Client press-4 already connected, closing old connection/gm)].map(([, at]) =>
    Number(at),
  );
}

function start(folder: string, { url, username, password }: Mosquitto, protocolVersion: number): Promise<AgentProcess> {
  mkdirSync(folder);
  return startAgent({
    folder,
    configuration: `
version: 1
agent: { name: gw1, dataDir: ${folder}/data }
http: { listen: "127.0.0.1:0" }
service: { url: "http://127.0.0.1:9/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  hall:
    type: mqtt
    url: ${url}
    username: ${username}
    password: ${password}
    clientId: ${clientId}
    protocolVersion: ${protocolVersion}
    tags: [{ input: "line.{n}", topic: "line/{n}" }]
`,
  });
}

/** Runs `mosquitto_sub` and restarts it whenever it ends. */
function rival({ port, username, password }: Mosquitto, protocolVersion: number): AsyncDisposable {
  let child: ChildProcess;
  let ended = false;
  const run = () => {
    if (ended) return;
    const args = ["-p", String(port), "-u", username, "-P", password, "-i", clientId, "-c", "-q", "1", "-t", "line/+"];
    child = spawn(
      "setpriv",
      ["--pdeathsig", "KILL", "mosquitto_sub", "-V", protocolVersion === 5 ? "5" : "311", ...args],
      {
        stdio: "ignore",
      },
    );
    child.once("exit", run);
  };
  run();
  return {
    async [Symbol.asyncDispose]() {
      ended = true;
      child.kill("SIGKILL");
    },
  };
}
