// Reloading a changed configuration into a running agent.
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { expectMode, has } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Simulators with these options and their own data directory. The service is unavailable. */
function configuration(folder: string, sources: Record<string, string> = { a: "1s", b: "1s" }, http = "") {
  const written = Object.entries(sources).map(
    ([name, every]) => `  ${name}: { type: simulator, every: ${every}, tags: [{ input: ${name}.sine }] }\n`,
  );
  return `version: 1
agent: { name: gw, dataDir: ${folder}/data }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${SERVICE_PASSWORD}" } } }
http: { listen: "127.0.0.1:0"${http} }
sources:
${written.join("")}`;
}

/** Variables that the agent needs and the reload command does not. */
const known = { env: { SERVICE_PASSWORD: "canary-9b1d" } };

async function names(agent: AgentProcess): Promise<string[]> {
  return (await agent.status()).sources.map(({ name }) => name);
}

/** Expects that `tagferry security` reports what the kernel and the running process report. */
async function expectHardened(file: string, agent: AgentProcess): Promise<void> {
  const args = ["security", "-c", file, "--json"];
  const variables = { SERVICE_PASSWORD: "canary-9b1d" };
  const asked = await command([...args, "--url", agent.page], { variables });
  const { ok, findings } = JSON.parse(asked.stdout);
  const root = process.getuid?.() === 0;
  expect(ok).toBe(!root);
  const of = (about: string) => findings.filter((finding: { about: string }) => finding.about === about);
  expect(of("process")).toMatchObject([
    { state: root ? "weak" : "good" },
    ...["no debugger by signal", "no code made of text", "no __proto__", `Node ${process.version}`].map((message) => ({
      state: "good",
      message,
    })),
  ]);
  expect(of("files")).toMatchObject([{ state: has.permissionBits ? "good" : "unknown" }]);
  // No agent answers at port 0: the findings about the process are unknown, the others remain.
  const alone = JSON.parse((await command(args, { variables })).stdout);
  expect(alone.findings).toContainEqual(expect.objectContaining({ about: "process", state: "unknown" }));
  expect(alone.findings).toContainEqual(expect.objectContaining({ about: "service", state: "good" }));
}

test("reload reports which sources started, restarted, stopped and continued; an invalid file is reported and changes nothing", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  await using agent = await startAgent({ ...known, folder: folder.path, configuration: configuration(folder.path) });
  const since = async () => (await agent.status()).sources.find(({ name }) => name === "b")?.since;
  const before = await since();
  const reload = (...args: string[]) => command(["reload", "--url", agent.page, ...args]);

  await expectHardened(file, agent);
  writeFileSync(file, configuration(folder.path, { b: "1s", c: "1s" }));
  expect(await reload()).toMatchObject({
    status: 0,
    stderr: "",
    stdout: "started: c\nstopped: a\n1 source unchanged\n",
  });
  expect(await names(agent)).toEqual(["b", "c"]);
  expect(await since()).toBe(before);

  writeFileSync(file, configuration(folder.path, { b: "1s", c: "2s" }, ", allowedHosts: [gw.local]"));
  expect((await reload()).stdout).toBe(`restarted: c
1 source unchanged
not in effect until the agent is restarted: changes of http
`);

  writeFileSync(file, configuration(folder.path, { b: "1s, evry: 1s", c: "10ms" }));
  const wrong = await reload();
  expect(wrong).toMatchObject({ status: 78, stderr: "" });
  expect(wrong.stdout).toContain(`${file}:6:36  sources.b.evry`);
  expect(wrong.stdout).toContain("must be at least 50ms");
  expect(wrong.stdout).toContain("2 errors; nothing was changed, the agent runs on as before\n");
  expect(await names(agent)).toEqual(["b", "c"]);
  const asJson = await reload("--json");
  expect(asJson.status).toBe(78);
  expect(JSON.parse(asJson.stdout)).toMatchObject({ ok: false, errors: [{ line: 6 }, { line: 7 }] });

  writeFileSync(file, configuration(folder.path, { b: "1s", c: "2s" }, ", allowedHosts: [gw.local]"));
  expect(JSON.parse((await reload("--json")).stdout)).toMatchObject({ ok: true, unchanged: ["b", "c"], started: [] });
});

test("status and metrics name the active configuration, a failed reload and changes that need a restart", async () => {
  using folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  await using agent = await startAgent({ ...known, folder: folder.path, configuration: configuration(folder.path) });
  const reload = () => command(["reload", "--url", agent.page]);
  const expected = async () => {
    const checked = await command(["check", "-c", file, "--json"], { variables: known.env });
    return JSON.parse(checked.stdout).checksum as string;
  };
  const shown = async () => {
    const {
      agent: { config },
      warnings,
    } = await agent.status();
    const text = await (await fetch(new URL("/metrics", agent.page))).text();
    const metrics = Object.fromEntries(
      [...text.matchAll(/^tagferry_(config_\w+|build_info)(\{.*\})? (.*)$/gm)].map(([, name, labels = "", value]) => [
        name + labels,
        Number(value),
      ]),
    );
    return { ...config, metrics, messages: warnings.map(({ message }) => message).join("\n") };
  };
  const first = await expected();
  const started = await shown();
  expect(started).toMatchObject({ checksum: first, needRestart: [], messages: "" });
  expect(started.metrics).toEqual({
    [`build_info{version="0.1.0",node="${process.version}",arch="${process.arch}"}`]: 1,
    [`config_info{checksum="${first}"}`]: 1,
    config_loaded_timestamp_seconds: started.loadedAt / 1e6,
    config_last_reload_successful: 1,
    config_restart_needed: 0,
  });

  writeFileSync(file, configuration(folder.path, { b: "1s, evry: 1s" }));
  await reload();
  const failed = await shown();
  expect(failed).toMatchObject({ checksum: first, loadedAt: started.loadedAt });
  expect(failed.failedReload?.reason).toBe(`${file}: 1 error`);
  expect(failed.messages).toContain(`${file}: 1 error; configuration ${first} of `);
  const { problems, text } = (await agent.status()).overall;
  expect(text).toContain("The last reload failed.");
  expect(problems.find((problem) => problem.text === "the last reload failed")?.command).toEqual(["check"]);
  expect(failed.metrics).toMatchObject({ config_last_reload_successful: 0, [`config_info{checksum="${first}"}`]: 1 });

  writeFileSync(file, configuration(folder.path, { b: "1s" }, ", allowedHosts: [gw.local]"));
  await reload();
  const second = await expected();
  const changed = await shown();
  expect(second).not.toBe(first);
  expect(changed).toMatchObject({ checksum: second, needRestart: ["http"] });
  expect(changed.failedReload).toBeUndefined();
  expect(changed.loadedAt).toBeGreaterThan(started.loadedAt);
  expect(changed.messages).toBe("changes of http in the configuration are not in effect");
  expect(changed.metrics).toMatchObject({ config_last_reload_successful: 1, config_restart_needed: 1 });
  expect(Object.keys(changed.metrics).filter((name) => name.startsWith("config_info"))).toEqual([
    `config_info{checksum="${second}"}`,
  ]);
});

test("a user who can read the data directory needs no token, others need http.token", async () => {
  using folder = temporaryFolder();
  const token = "canary-token-7f3a9c";
  await using agent = await startAgent({
    ...known,
    folder: folder.path,
    configuration: configuration(folder.path, undefined, `, token: ${token}`),
  });
  const control = join(folder.path, "data/control.token");
  expectMode(control, 0o600);
  // A file with another content in its place is treated like one that the user may not read: it is never sent.
  chmodSync(control, 0o600);
  writeFileSync(control, "something else\n");

  const without = await command(["reload", "--url", agent.page]);
  expect(without).toMatchObject({ status: 77, stdout: "" });
  expect(without.stderr).toContain(`a token is needed: http.token; the one in ${control} cannot be read by this user`);
  expect(without.stderr).toContain("--token-file with what http.token says");

  const tokenFile = folder.file("token");
  writeFileSync(tokenFile, "wrong-wrong-wrong\n");
  const wrong = await command(["reload", "--url", agent.page, "--token-file", tokenFile]);
  expect(wrong.status).toBe(77);
  writeFileSync(tokenFile, `${token}\n`);
  expect(await command(["reload", "--url", agent.page, "--token-file", tokenFile])).toMatchObject({ status: 0 });
  // The token is found through the configuration, although its port differs from the agent's.
  const file = folder.file("elsewhere.yaml");
  writeFileSync(file, readFileSync(folder.file("tagferry.yaml"), "utf8").replace(":0", `:${new URL(agent.page).port}`));
  expect(await command(["reload", "-c", file])).toMatchObject({ status: 0 });
  expect(JSON.stringify(agent.log)).not.toContain(token);
});

test("reload without a running agent ends with 69", async () => {
  const { status, stderr } = await command(["reload", "--url", "http://127.0.0.1:1"]);
  expect(status).toBe(69);
  expect(stderr).toContain("no agent answers at http://127.0.0.1:1");
});
