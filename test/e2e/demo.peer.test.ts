// `tagferry demo` as the README shows it, and of the built program: it ends by itself and shows everything.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { programAt, tagferry } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { natsServerProgram } from "../support/nats-servers.ts";
import { program } from "../support/program.ts";

const root = resolve(import.meta.dirname, "../..");

test("a demo with a duration reads everything back, misses no value, and ends with 0", {
  timeout: 180_000,
}, async () => {
  const { status, stdout, stderr } = await programAt(`${root}/src/cli/main.ts`, ["demo", "--duration", "15s"]);
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  const [, read, stored] =
    /^demo: read (\d+), stored (\d+), missing 0, requests \d+, max rate [01]\.\d\d\/s, outage 5 s$/.exec(last) ?? [];
  expect(last).toMatch(/^demo: read [1-9]/);
  expect(stored).toBe(read);
  expect(stderr).not.toMatch(/never delivered by a device/);
  // The address and credentials for looking at it from another terminal.
  expect(stdout).toContain("(user gateway, password demo)");
  expect(stdout).toMatch(
    /From another terminal: (npm run tagferry --|tagferry) status --url http:\/\/127\.0\.0\.1:\d+\n/,
  );
  expect(status).toBe(0);
});

test("the built program's demo does the same, without a warning of Node", { timeout: 180_000 }, async () => {
  // The simulated devices need development dependencies. In the repository the program finds them in a parent folder.
  const { status, stdout, stderr } = await tagferry(["demo", "--duration", "3s"]);

  expect(stdout).toMatch(/\ndemo: read [1-9]\d*, stored [1-9]\d*, missing 0, .*\n$/);
  expect(stderr).not.toMatch(/Warning: /);
  expect(status).toBe(0);
});

test("the demo of a cluster kills an agent and a server, and misses no value", { timeout: 300_000 }, async () => {
  const { status, stdout } = await tagferry([
    "demo",
    "--cluster",
    "--duration",
    "25s",
    "--nats-server",
    await natsServerProgram(),
  ]);

  expect(stdout).toContain("killing gw-left, which delivers for both");
  expect(stdout).toContain("killing NATS server n1");
  expect(stdout).toMatch(/gw-right delivers/);
  expect(stdout).toMatch(/\ndemo: read ([1-9]\d*), stored \1, missing 0, requests \d+, max rate \S+, outage 0 s\n$/);
  expect(status).toBe(0);
});

test("the demo of a cluster says what it needs where there is no nats-server", async () => {
  const { status, stderr } = await tagferry(["demo", "--cluster", "--nats-server", "/nonexistent/nats-server"]);
  expect(stderr).toContain("/nonexistent/nats-server is not a program that can be run");
  expect(stderr).toContain("https://github.com/nats-io/nats-server/releases");
  expect(status).toBe(2);
});

test("a demo without an end serves all pages: its token opens the configuration and adds tags", {
  timeout: 60_000,
}, async () => {
  const demo = spawn(process.execPath, [program, "demo"], { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
  const ended = once(demo, "close");
  let shown = "";
  demo.stdout.on("data", (chunk) => (shown += String(chunk)));
  try {
    const [, page = "", token = ""] = await eventually(
      () => /status page +(http:\S+) .*: (\S+)\)\n/.exec(shown) ?? undefined,
      50_000,
    );
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const config = await fetch(`${page}/api/config`, { headers });
    const places = await fetch(`${page}/api/discover/places`, { method: "POST", headers, body: "{}" });

    expect((await fetch(`${page}/api/config`)).status).toBe(401);
    expect(await config.text()).toContain("http.token");
    expect(await places.json()).toMatchObject({
      ok: true,
      sources: [{ name: "hall" }, { name: "meters" }, { name: "line" }],
    });
  } finally {
    demo.kill("SIGINT");
    await ended;
  }
});

test("a demo ends when its output is closed", { timeout: 60_000 }, async () => {
  // The shell waits for both sides of the pipe.
  const piped = spawn("sh", ["-c", `${process.execPath} ${program} demo | head -n 12`], {
    cwd: root,
    stdio: ["ignore", "pipe", "ignore"],
    detached: true,
  });
  let read = "";
  piped.stdout.on("data", (chunk) => (read += String(chunk)));
  try {
    await once(piped, "close", { signal: AbortSignal.timeout(50_000) });
  } finally {
    // Kills the process group if it has not ended.
    if (piped.pid !== undefined && piped.exitCode === null) process.kill(-piped.pid, "SIGKILL");
  }
  expect(read.split("\n")).toHaveLength(13);
});
