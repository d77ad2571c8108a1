// What the agent does when it is told something by a signal.
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (folder: string) => `version: 1
agent: { name: signals, dataDir: ${JSON.stringify(`${folder}/data`)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: secret } } }
http: { listen: "127.0.0.1:0" }
sources: { waves: { type: simulator, tags: [{ input: sine, wave: sine, period: 5s, min: 0, max: 1, every: 50ms }] } }
`;

test("a SIGHUP ends nothing: the agent says so and reads on", async () => {
  using folder = temporaryFolder();
  await using agent = await startAgent({ folder: folder.path, configuration: configuration(folder.path) });

  process.kill(agent.pid, "SIGHUP");
  await eventually(() => agent.log.some(({ signal }) => signal === "SIGHUP"));

  const before = (await agent.status()).buffer.appendedPoints;
  await eventually(async () => (await agent.status()).buffer.appendedPoints > before);
});

test("a SIGINT that comes twice, from the terminal and from npm, ends the agent in order", async () => {
  using folder = temporaryFolder();
  await using agent = await startAgent({ folder: folder.path, configuration: configuration(folder.path) });

  process.kill(agent.pid, "SIGINT");
  process.kill(agent.pid, "SIGINT");
  const stopped = agent.stop();

  expect(await stopped).toBe(0);
});
