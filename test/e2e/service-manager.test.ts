// The notifications that the agent sends to systemd. A script in place of `systemd-notify` records its arguments.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (folder: string, sources: string) => `
version: 1
agent: { name: gw1, dataDir: ${folder}/data }
http: { listen: 127.0.0.1:0 }
service:
  url: http://127.0.0.1:1/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${SERVICE_PASSWORD}" } }
sources: ${sources}
`;
const one = "{ demo: { type: simulator, tags: [{ input: a, wave: sine }] } }";
const two = "{ demo: { type: simulator, tags: [{ input: a, wave: sine }, { input: b, wave: sine }] } }";

/** A `systemd-notify` that records each call as a line. */
function helper(folder: { readonly path: string; file(name: string): string }) {
  const heard = folder.file("heard");
  writeFileSync(folder.file("systemd-notify"), `#!/bin/sh\necho "$NOTIFY_SOCKET $*" >> ${heard}\n`);
  chmodSync(folder.file("systemd-notify"), 0o755);
  const lines = () => (existsSync(heard) ? readFileSync(heard, "utf8").trim().split("\n") : []);
  const env = {
    SERVICE_PASSWORD: "canary",
    PATH: `${folder.path}:${process.env.PATH}`,
    NOTIFY_SOCKET: "/run/systemd/notify",
  };
  return { lines, env };
}

test.runIf(has.shell && has.signals)(
  "systemd is notified when the agent is ready, alive, reloading and stopping, and never of a secret",
  async () => {
    using folder = temporaryFolder();
    const { lines, env } = helper(folder);
    const text = configuration(folder.path, one);
    await using agent = await startAgent({
      folder: folder.path,
      configuration: text,
      env: { ...env, WATCHDOG_USEC: "300000" },
    });
    const ready = `/run/systemd/notify READY=1 STATUS=1 source, page ${agent.page}`;

    await eventually(() => lines().filter((line) => line.endsWith("WATCHDOG=1")).length >= 3, 20_000);
    expect(lines()[0]).toBe(ready);

    writeFileSync(folder.file("tagferry.yaml"), configuration(folder.path, two));
    process.kill(agent.pid, "SIGHUP");
    await eventually(() => lines().includes("/run/systemd/notify READY=1"), 20_000);
    expect(lines().filter((line) => !line.endsWith("WATCHDOG=1"))).toEqual([
      ready,
      "/run/systemd/notify RELOADING=1",
      "/run/systemd/notify READY=1",
    ]);

    expect(await agent.stop()).toBe(0);
    expect(lines().at(-1)).toBe("/run/systemd/notify STOPPING=1");
    expect(lines().join("\n")).not.toContain("canary");
  },
);

test.runIf(has.shell && has.signals)("without the helper the agent runs and reports once what is missing", async () => {
  using folder = temporaryFolder();
  const { env } = helper(folder);
  await using agent = await startAgent({
    folder: folder.path,
    configuration: configuration(folder.path, one),
    env: { ...env, PATH: "/nonexistent", WATCHDOG_USEC: "300000" },
  });
  const missing = () =>
    agent.log.filter(({ msg }) => String(msg).startsWith("cannot report the program's state to systemd"));
  await eventually(() => missing().length > 0, 20_000);

  expect(missing()).toMatchObject([{ level: 40, reason: "spawn systemd-notify ENOENT" }]);
  expect(await agent.stop()).toBe(0);
  expect(missing()).toHaveLength(1);
});

test.runIf(has.shell && has.signals)("notifications meant for another process are left to that process", async () => {
  using folder = temporaryFolder();
  const { lines, env } = helper(folder);
  await using agent = await startAgent({
    folder: folder.path,
    configuration: configuration(folder.path, one),
    env: { ...env, WATCHDOG_USEC: "300000", WATCHDOG_PID: "1" },
  });
  await eventually(() => lines().length > 0, 20_000);

  expect(await agent.stop()).toBe(0);
  expect(lines().filter((line) => line.endsWith("WATCHDOG=1"))).toEqual([]);
});
