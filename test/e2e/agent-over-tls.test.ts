// The page, /metrics and the commands with http.tls and http.readToken set.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { startAgent } from "../support/agent-process.ts";
import { authority } from "../support/certificate.ts";
import { command } from "../support/command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tls = (name: string) => resolve(import.meta.dirname, "../fixtures/tls", name);
const readToken = "canary-read-0123456789";
const token = "canary-change-0123456789";

const configuration = (folder: string, port: number) => `version: 1
agent: { name: gw, dataDir: ${folder}/data, ownSignals: off }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: secret } } }
http:
  listen: "127.0.0.1:${port}"
  tls: { certFile: ${tls("broker.pem")}, keyFile: ${tls("broker-key.pem")} }
  readToken: ${readToken}
  token: ${token}
sources: { demo: { type: simulator, tags: [{ input: demo.sine }] } }
`;

/** Commands read the port from the file, so the agent cannot choose it. */
function startWith(folder: string, change: (configuration: string) => string) {
  return onFreePorts(1, ([port = 0]) => startAgent({ folder, configuration: change(configuration(folder, port)) }));
}

function ask(url: string, authorization?: string): Promise<{ status: number; asks: string | undefined; text: string }> {
  const {
    promise,
    resolve: done,
    reject,
  } = Promise.withResolvers<{ status: number; asks: string | undefined; text: string }>();
  get(
    url,
    { ca: readFileSync(tls("ca.pem")), headers: authorization === undefined ? {} : { authorization } },
    (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => done({ status: answer.statusCode ?? 0, asks: answer.headers["www-authenticate"], text }));
    },
  ).on("error", reject);
  return promise;
}

test("only who sends a token may look; programs and browsers can; health and commands need nothing more", async () => {
  using folder = temporaryFolder();
  await using agent = await startWith(folder.path, (text) => text);
  const { page } = agent;
  expect(page).toMatch(/^https:\/\/127.0.0.1:\d+$/);
  // Before a command of this process has named the authority.
  const foreign = await command(["fleet", "status", page]);
  expect(foreign.stdout).toContain("its certificate is not trusted");
  expect(foreign.stdout).toContain("--ca-file names it, or its authority");
  expect(foreign.stdout).not.toContain("Node.js");

  for (const path of ["/", "/metrics", "/api/status", "/api/view", "/api/events", "/api/gaps", "/no"])
    expect([path, await ask(page + path)]).toMatchObject([
      path,
      { status: 401, asks: expect.stringMatching(/^Basic/) },
    ]);
  for (const path of ["/healthz", "/readyz"]) expect(await ask(page + path)).toMatchObject({ status: 200 });
  const healthcheck = spawn(process.execPath, [resolve(import.meta.dirname, "../../packaging/healthcheck.js")], {
    env: { TAGFERRY_HEALTH_URL: `${page}/healthz` },
    stdio: "ignore",
  });
  expect(await once(healthcheck, "exit")).toEqual([0, null]);
  const basic = (password: string) => `Basic ${btoa(`anybody:${password}`)}`;
  for (const authorization of [`Bearer ${readToken}`, `Bearer ${token}`, basic(readToken)])
    expect(await ask(`${page}/metrics`, authorization)).toMatchObject({
      status: 200,
      text: expect.stringContaining("tagferry_build_info"),
    });
  for (const authorization of [
    "Bearer canary-read",
    basic("canary-read-012345678"),
    basic(""),
    "Bearer",
    `Digest ${readToken}`,
  ])
    expect([authorization, await ask(`${page}/metrics`, authorization)]).toMatchObject([
      authorization,
      { status: 401 },
    ]);
  // The read token permits reading only.
  expect(await ask(`${page}/api/log`, `Bearer ${readToken}`)).toMatchObject({ status: 401 });

  const file = join(folder.path, "tagferry.yaml");
  const ca = ["--ca-file", tls("ca.pem")];
  expect(await command(["status", "-c", file, ...ca])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(page),
  });
  expect(await command(["gaps", "-c", file, ...ca])).toMatchObject({ status: 0 });
  const tokens = folder.file("read-token");
  writeFileSync(tokens, `${readToken}\n`);
  expect(await command(["fleet", "status", page, ...ca, "--token-file", tokens])).toMatchObject({
    stdout: expect.stringContaining("gw"),
  });
  const refused = await command(["fleet", "status", page, ...ca]);
  expect(refused).toMatchObject({
    status: 69,
    stdout: expect.stringContaining("refuses: a token is needed: http.readToken"),
  });
  writeFileSync(tokens, "canary-of-another-gateway");
  const wrong = await command(["fleet", "status", page, ...ca, "--token-file", tokens]);
  expect(wrong).toMatchObject({
    status: 69,
    stdout: expect.stringContaining("refuses: invalid token: http.readToken"),
  });

  expect(JSON.stringify(agent.log)).toContain("refused: invalid token");
  expect(JSON.stringify(agent.log)).not.toMatch(/canary/);
});

test("where only http.readToken is set, a reload takes the token that may change something", async () => {
  using folder = temporaryFolder();
  await using agent = await startWith(folder.path, (text) => text.replace(`  token: ${token}\n`, ""));
  const file = join(folder.path, "tagferry.yaml");
  expect(await command(["reload", "-c", file, "--ca-file", tls("ca.pem")])).toMatchObject({ status: 0 });
  expect(JSON.stringify(agent.log)).not.toContain("refused");
});

test("the agent's own configuration is enough for commands on its machine, whoever issued its certificate", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  const plant = authority("Authority of the plant");
  const { cert, key } = plant.issue({ names: ["gw1.plant.example"] });
  writeFileSync(folder.file("page.pem"), cert);
  writeFileSync(folder.file("page-key.pem"), key);
  await using agent = await startWith(folder.path, (text) =>
    text
      .replace(tls("broker.pem"), folder.file("page.pem"))
      .replace(tls("broker-key.pem"), folder.file("page-key.pem")),
  );
  expect(await command(["status", "-c", file])).toMatchObject({
    status: 0,
    stdout: expect.stringContaining(agent.page),
  });
  expect(await command(["reload", "-c", file])).toMatchObject({ status: 0 });
  // Another certificate at that place is not taken, although the same authority issued it.
  const other = plant.issue({ names: ["gw2.plant.example"] });
  writeFileSync(folder.file("page.pem"), other.cert);
  expect(await command(["status", "-c", file])).toMatchObject({ status: 69 });
});

test("a certificate and a key that do not belong together end the agent with 78 and name both files", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(file, configuration(folder.path, 0).replace("broker-key.pem", "client-key.pem"));
  const { status, stderr } = await command(["run", "-c", file]);
  expect(status).toBe(78);
  expect(stderr).toContain(`${tls("broker.pem")} and ${tls("client-key.pem")} are no certificate and its key`);
});
