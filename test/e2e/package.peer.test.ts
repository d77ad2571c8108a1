// The Debian package on a machine with a real systemd: installed, run, upgraded, hardened as its unit specifies,
// removed.
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { architectureOf, release } from "../../packaging/release.ts";
import type { Status } from "../../src/agent/status/status.ts";
import { type DebianMachine, debianMachine } from "../support/debian-machine.ts";
import { eventually } from "../support/eventually.ts";
import { gopcuaProgram } from "../support/gopcua.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const repository = resolve(import.meta.dirname, "../..");
const password = "canary-4711";
let machine: DebianMachine;
let file: string;

beforeAll(async () => {
  file = execFileSync(process.execPath, ["packaging/deb.ts", folder.path], {
    cwd: repository,
    encoding: "utf8",
    env: { ...process.env, DEB_LEVEL: "0" },
  }).trim();
  machine = await debianMachine();
  copyFileSync(file, join(machine.root, "root", basename(file)));
  // Not every machine lets a container create its own devices.
  if ((await machine.run("systemd-run", "-q", "--wait", "-p", "PrivateDevices=yes", "/bin/true")).status !== 0) {
    dropIn("machine.conf", "PrivateDevices=no");
  }
}, 600_000);

afterAll(async () => {
  await machine?.[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
}, 120_000);

/** Runs a command on the machine. Throws if it fails. */
async function ok(...command: readonly string[]): Promise<string> {
  const { status, output } = await machine.run(...command);
  if (status !== 0) {
    const journal = await machine.run("journalctl", "--no-pager", "-n", "30");
    throw new Error(`${command.join(" ")} ended with ${status}: ${output}\n${journal.output}`);
  }
  return output;
}

async function property(name: string): Promise<string> {
  return (await ok("systemctl", "show", "tagferry", "-p", name, "--value")).trim();
}

function dropIn(name: string, settings: string): void {
  const home = join(machine.root, "etc/systemd/system/tagferry.service.d");
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, name), `[Service]\n${settings}\n`);
}

/** The shell's built-in `kill`: the machine has no other. */
const kill = (signal: string, pid: string) => ok("sh", "-c", `kill -${signal} ${pid}`);

const install = () => ok("dpkg", "-i", `/root/${basename(file)}`);
const configurationFile = () => join(machine.root, "etc/tagferry/tagferry.yaml");

function configure(text = "", more = ""): void {
  writeFileSync(
    configurationFile(),
    `version: 1
service:
  url: http://127.0.0.1:8420/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: "\${credential:service_password}" } }
sources: { demo: { type: simulator, tags: [{ input: sine, wave: sine }] }${more} }
${text}`,
  );
}

test("the package creates its user and folders, prints the next step and starts nothing", {
  timeout: 60_000,
}, async () => {
  const output = await install();

  expect(output).toContain("tagferry init");
  expect(await property("UnitFileState")).toBe("enabled");
  expect(await ok("stat", "-c", "%a %U %G", "/etc/tagferry", "/etc/tagferry/credentials")).toBe(
    "750 root tagferry\n700 root root\n",
  );
  expect(await ok("stat", "-c", "%a", "/")).toBe("755\n");
  await ok("systemctl", "start", "tagferry");
  expect(await property("ActiveState")).toBe("inactive");
  expect(await ok("tagferry", "version")).toMatch(/^tagferry \d/);
});

test("init at the path of the package makes no folder that the page writes to, and includes none", {
  timeout: 60_000,
}, async () => {
  const etc = () => readdirSync(join(machine.root, "etc/tagferry"));
  const before = etc();
  const flags = "--yes --offline --source simulator --integration c8ktonqsahsmemfs7lv0 --password-env PASSWORD";
  const path = "/etc/tagferry/tagferry.yaml";
  await ok("env", `PASSWORD=${password}`, "tagferry", "init", "-c", path, ...flags.split(" "));

  expect(readFileSync(configurationFile(), "utf8")).not.toMatch(/^include:/m);
  const added = etc().filter((name) => !before.includes(name));
  expect(added).toContain("tagferry.yaml");
  expect(added).not.toContain("conf.d");
  for (const name of added) rmSync(join(machine.root, "etc/tagferry", name));
});

test("an invalid configuration is explained in the journal and not retried", { timeout: 60_000 }, async () => {
  configure("nonsense: 1\n");
  expect((await machine.run("systemctl", "start", "tagferry")).status).not.toBe(0);
  await eventually(async () => (await property("ActiveState")) === "failed", 20_000);

  expect(await property("ExecMainStatus")).toBe("78");
  expect(await property("NRestarts")).toBe("0");
  expect(await ok("journalctl", "-u", "tagferry", "--no-pager")).toContain("/etc/tagferry/tagferry.yaml:7:1  nonsense");
});

test("the configured unit starts, systemd waits until it is ready, and a reload keeps the process", {
  timeout: 60_000,
}, async () => {
  writeFileSync(join(machine.root, "etc/tagferry/credentials/service_password"), password, { mode: 0o600 });
  configure();
  await ok("systemctl", "start", "tagferry");

  expect(await property("ActiveState")).toBe("active");
  expect(await property("StatusText")).toContain("1 source, page http://127.0.0.1:8421");
  expect(await ok("tagferry", "status")).toContain("demo");
  await ok("systemctl", "reload", "tagferry");
  expect(await ok("journalctl", "-u", "tagferry", "--no-pager")).toContain("configuration reloaded");
  expect(await ok("systemctl", "is-active", "tagferry")).toBe("active\n");
});

test("the agent runs unprivileged: own user, no capabilities, filtered system calls, no new privileges", async () => {
  const status = await ok("cat", `/proc/${await property("MainPID")}/status`);
  const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(status)?.[1];

  expect(field("Uid")).toBe((await ok("id", "-u", "tagferry")).trim());
  expect({ caps: field("CapEff"), privileges: field("NoNewPrivs"), filter: field("Seccomp") }).toEqual({
    caps: "0000000000000000",
    privileges: "1",
    filter: "2",
  });
});

test("systemd rates the unit's exposure at most 1.5 of 10, with serial ports at most 2", async () => {
  const unit = "/lib/systemd/system/tagferry.service";
  await ok("systemd-analyze", "verify", unit);
  // The threshold is the exposure score times ten.
  await ok("systemd-analyze", "security", "--offline=true", "--threshold=15", unit);
  const serial = readFileSync(join(repository, "systemd/serial.conf"), "utf8").split("[Service]\n")[1] ?? "";
  const withSerial = readFileSync(join(machine.root, unit), "utf8").replace("[Install]", `${serial}\n[Install]`);
  writeFileSync(join(machine.root, "root/tagferry-serial.service"), withSerial);
  await ok("systemd-analyze", "security", "--offline=true", "--threshold=20", "/root/tagferry-serial.service");
});

test("the agent listens on loopback only, and no debugger can be started", async () => {
  const listening = async () =>
    (await ok("ss", "-Hltun"))
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/)[4]);
  expect(await listening()).toEqual(["127.0.0.1:8421"]);

  await kill("USR1", await property("MainPID"));
  // The answer comes after the signal, so the agent has handled the signal by then.
  await ok("tagferry", "status");
  expect(await ok("systemctl", "is-active", "tagferry")).toBe("active\n");
  expect(await listening()).toEqual(["127.0.0.1:8421"]);
});

test("the password is neither in the process list, nor in the journal, nor in any file of the agent", async () => {
  const pid = await property("MainPID");
  for (const part of ["environ", "cmdline"]) expect(await ok("cat", `/proc/${pid}/${part}`)).not.toContain(password);
  expect(await ok("journalctl", "--no-pager")).not.toContain(password);
  expect((await machine.run("grep", "-r", password, "/var/lib/tagferry", "/var/cache/tagferry")).output).toBe("");
});

test("a killed agent is started again and continues with its stored points", { timeout: 60_000 }, async () => {
  const before = await property("MainPID");
  const unsettled = async () => {
    const { buffer } = JSON.parse((await machine.run("tagferry", "status", "--json")).stdout) as Status;
    return buffer.unsettledPoints;
  };
  await eventually(async () => (await unsettled()) > 2, 30_000);
  await kill("9", before);
  await eventually(async () => {
    const pid = await property("MainPID");
    return pid !== "0" && pid !== before && (await property("ActiveState")) === "active";
  }, 40_000);

  expect(await property("NRestarts")).toBe("1");
  expect(await unsettled()).toBeGreaterThan(2);
});

test("a hanging agent is restarted by the watchdog", { timeout: 90_000 }, async () => {
  dropIn("watchdog.conf", "WatchdogSec=3\nRestartSec=1");
  await ok("systemctl", "daemon-reload");
  await ok("systemctl", "restart", "tagferry");
  const before = await property("MainPID");
  await kill("STOP", before);
  await eventually(async () => !["0", before].includes(await property("MainPID")), 60_000);

  expect(await ok("journalctl", "-u", "tagferry", "--no-pager")).toContain("Watchdog timeout");
});

/** The number of sessions and subscriptions that agents have at the machine's OPC UA server. */
async function opcuaClients(): Promise<string> {
  const answers = () => readFileSync(join(machine.root, "root/plc.out"), "utf8").split("\n").slice(1, -1);
  const before = answers().length;
  appendFileSync(join(machine.root, "root/plc.in"), "count\n");
  return await eventually(() => answers()[before]);
}

test("the agent reads an OPC UA server on the machine over one session and one subscription", {
  timeout: 120_000,
}, async () => {
  copyFileSync(await gopcuaProgram(), join(machine.root, "root/plc"));
  chmodSync(join(machine.root, "root/plc"), 0o755);
  for (const name of ["plc.in", "plc.out"]) writeFileSync(join(machine.root, "root", name), "");
  await ok("systemd-run", "-q", "--unit=plc", "sh", "-c", "tail -f /root/plc.in | /root/plc 4840 > /root/plc.out");
  const source =
    "opcua, url: opc.tcp://127.0.0.1:4840, security: { mode: none }, tags: [{ input: t, path: Line/Temp }]";
  configure("", `, line: { type: ${source} }`);
  await ok("systemctl", "restart", "tagferry");
  await eventually(async () => /line .*online/.test(await ok("tagferry", "status")), 60_000);
  expect(await opcuaClients()).toBe("count 1 1");
});

test("an upgrade restarts the agent and keeps configuration and buffer", { timeout: 120_000 }, async () => {
  const before = { text: readFileSync(configurationFile(), "utf8"), pid: await property("MainPID") };
  await install();

  expect(readFileSync(configurationFile(), "utf8")).toBe(before.text);
  await eventually(async () => (await property("ActiveState")) === "active", 20_000);
  expect(await property("MainPID")).not.toBe(before.pid);
  expect(readdirSync(join(machine.root, "var/lib/tagferry/buffer")).length).toBeGreaterThan(0);
  // The session stays open, and the new version resumes it.
  await eventually(async () => /line .*online/.test(await ok("tagferry", "status")), 60_000);
  expect(await opcuaClients()).toBe("count 1 1");
});

test("removal stops the agent and keeps the configuration; a purge keeps only the buffer", {
  timeout: 60_000,
}, async () => {
  await ok("dpkg", "-r", "tagferry");
  // A final stop closes the session, so that a server with a single session is free for other clients.
  expect(await opcuaClients()).toBe("count 0 0");
  expect((await machine.run("systemctl", "is-active", "tagferry")).output).toBe("inactive\n");
  expect(existsSync(configurationFile())).toBe(true);
  expect(existsSync(join(machine.root, "usr/bin/tagferry"))).toBe(false);

  const output = await ok("dpkg", "-P", "tagferry");
  expect(output).toContain("/var/lib/tagferry is kept");
  expect(existsSync(join(machine.root, "etc/tagferry"))).toBe(false);
  expect(readdirSync(join(machine.root, "var/lib/tagferry/buffer")).length).toBeGreaterThan(0);
});

test("without a package, install-service makes systemd start the program that ran the command", {
  timeout: 120_000,
}, async () => {
  await release(join(machine.root, "opt/tagferry"), architectureOf(undefined));
  copyFileSync(process.execPath, join(machine.root, "opt/node"));
  const program = ["/opt/node", "/opt/tagferry/main.js"];
  const output = await ok(...program, "install-service");
  expect(output).toContain("wrote /etc/systemd/system/tagferry.service");
  expect(output).toContain("tagferry init -o /etc/tagferry/tagferry.yaml");

  configure();
  writeFileSync(join(machine.root, "etc/tagferry/credentials/service_password"), password, { mode: 0o600 });
  await ok("systemctl", "start", "tagferry");
  expect(await property("ActiveState")).toBe("active");
  await ok("systemctl", "reload", "tagferry");
  await ok("systemctl", "stop", "tagferry");
  expect(await property("ExecMainStatus")).toBe("0");
});

test("install-service does not replace the unit of a package", { timeout: 60_000 }, async () => {
  await install();
  const { status, output } = await machine.run("/opt/node", "/opt/tagferry/main.js", "install-service");
  expect({ status, output }).toMatchObject({ status: 1, output: expect.stringContaining("from a package") });
});
