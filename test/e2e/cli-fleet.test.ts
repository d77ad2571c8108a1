// One table of many agents, for the operator and for monitoring.
import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { expect, test } from "vitest";
import type { Status } from "../../src/agent/status/status.ts";
import { openWeb } from "../../src/web/server.ts";
import { command } from "../support/command.ts";
import { testRuntime } from "../support/runtime.ts";
import { sourceWith, statusWith, tagWith } from "../support/status.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

function answering(status: Status) {
  return openWeb(
    {
      listen: { host: "127.0.0.1", port: 0 },
      snapshot: () => status,
      metrics: async () => "",
      health: () => ({ ok: true }),
      ready: () => ({ ok: true }),
    },
    testRuntime(),
    new AbortController().signal,
  );
}

/** A server that accepts connections and never answers. */
async function silent() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => void server.close() };
}

/** Answers every request with this. */
async function saying(answer: object) {
  const server = createHttpServer((_, response) => void response.end(JSON.stringify(answer))).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const south = statusWith();
const troubled = statusWith({
  agent: {
    ...south.agent,
    name: "south-gw2",
    version: "0.2.0",
    config: { ...south.agent.config, checksum: "0a1b2c3d4e5f" },
  },
  sources: [sourceWith(), sourceWith({ name: "bus1", state: "waiting" })],
  tags: Array.from({ length: 5_000 }, (_, tag) => tagWith({ tag, input: `a.${tag}` })),
  buffer: {
    ...south.buffer,
    losses: [{ reason: "maxSize", points: 70, from: undefined, to: undefined, intervals: [] }],
  },
  upload: { ...south.upload, lagMs: 90_000, backlogPoints: 12_345, refusedPoints: 3 },
});

test("one table shows every agent, also those that do not answer, and the exit status is for monitoring", async () => {
  using folder = temporaryFolder();
  await using well = await answering(south);
  await using bad = await answering(troubled);
  using hung = await silent();
  const gone = await silent();
  gone[Symbol.dispose]();
  const list = folder.file("gateways.txt");
  writeFileSync(list, `# north\n${well.url}   # hall 1\n\n${bad.url}\n${well.url}\n`);
  const run = (...args: string[]) => command(["fleet", "status", ...args]);

  expect(await run(well.url)).toMatchObject({ status: 0, stderr: "" });
  expect(await run(list)).toEqual(
    expect.objectContaining({
      status: 1,
      stdout: `  agent      version  configuration  sources  lag    backlog  lost  refused  state
  north-gw1  0.1.0    9f86d081884c   1/1      1.2s   200      0     0        ${south.overall.text}
  south-gw2  0.2.0    0a1b2c3d4e5f   1/2      1m30s  12,345   70    3        ${troubled.overall.text}
2 agents, 1 well, 1 needs an operator, 2 versions, 2 configurations
`,
    }),
  );

  const some = await run(list, hung.url, gone.url, "--timeout", "1s", "--json");
  expect(some.status).toBe(69);
  const { ok, agents } = JSON.parse(some.stdout);
  expect(ok).toBe(false);
  expect(agents).toMatchObject([
    { name: "north-gw1", level: "good", sources: { online: 1, configured: 1 }, lostPoints: 0 },
    {
      name: "south-gw2",
      level: "bad",
      checksum: "0a1b2c3d4e5f",
      lostPoints: 70,
      refusedPoints: 3,
      backlogPoints: 12_345,
    },
    { url: hung.url, level: "unreachable", text: expect.stringContaining("nothing came within 1s") },
    { url: gone.url, level: "unreachable", text: expect.stringContaining("ECONNREFUSED") },
  ]);
});

test("what a foreign program answers in place of an agent is bounded and cannot control the terminal", async () => {
  const rude = `\u001b]0;x\u0007\u009b2J\u202e${"long ".repeat(100_000)}`;
  const agent = { name: rude, version: rude, config: { checksum: rude } };
  using foreign = await saying({ status: { ...south, agent, overall: { level: "bad", text: rude } } });
  using flood = await saying({ status: south, more: "x".repeat(5 * 2 ** 20) });

  for (const more of [[], ["--json"]]) {
    const { status, stdout } = await command(["fleet", "status", foreign.url, flood.url, ...more]);
    expect(status).toBe(69);
    expect(stdout).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
    expect(stdout).toContain("\\u001b]0;x");
    expect(stdout).toContain("the answer is longer than 4 MiB");
    expect(stdout.length).toBeLessThan(10_000);
  }
});

test.for([
  ["no-such-file", "no-such-file is no address (http://…) and no file with addresses: there is no such file"],
  ["wrong.txt", "wrong.txt:2: expected an address such as http://10.0.0.9:8421, got gw1.plant.local"],
  ["empty.txt", "empty.txt: no addresses of agents"],
] as const)("%s is reported as wrong use", async ([name, message]) => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("wrong.txt"), "http://10.0.0.1\ngw1.plant.local\n");
  writeFileSync(folder.file("empty.txt"), "# later\n");
  const ended = await command(["fleet", "status", name], { cwd: folder.path });
  expect(ended).toMatchObject({ status: 2, stdout: "", stderr: `tagferry: ${message}\n` });
});
