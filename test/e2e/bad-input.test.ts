// Invalid input before the agent runs: the user sees one clear text and the exit status that scripts rely on.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { tagferry } from "../support/cli.ts";
import { eventually } from "../support/eventually.ts";
import { has } from "../support/platform.ts";
import { program } from "../support/program.ts";
import { resume, suspend } from "../support/suspend.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const configuration = (dataDir: string, listen = "127.0.0.1:0") => `version: 1
agent: { name: test, dataDir: ${JSON.stringify(dataDir)} }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PW:-x}" } } }
http: { listen: "${listen}" }
sources:
  demo: { type: simulator, tags: [{ input: demo.sine, wave: sine, period: 60s, min: 0, max: 100 }] }
`;

test("every error of a configuration is reported in one run with position and remedy, and exit status 78", async () => {
  using folder = temporaryFolder();
  const file = folder.file("agent.yaml");
  writeFileSync(
    file,
    `version: 1
service:
  url: http://127.0.0.1:1/v1
  integration: nope
  auth: { basic: { password: "\${SECRET_THAT_IS_NOT_SET}" } }
bufer: { maxSize: 1GiB }
sources:
  bus1:
    type: modbus
    url: tcp://127.0.0.1:502
    devices:
      - unit: 300
        tags:
          - { input: a.b, at: "hr:0 u16" }
          - { input: a.b, at: "hr:1 u16" }
          - { input: "a b c", at: "hr:2 u16" }
          - { input: a.c, at: "40" }
`,
  );
  for (const command of ["run", "check"]) {
    const { status, stdout, stderr } = await tagferry([command, "-c", file]);
    expect(status).toBe(78);
    const text = stdout + stderr;
    for (const [position, words] of [
      ["4:16", "Integration ID"],
      ["5:30", "SECRET_THAT_IS_NOT_SET"],
      ["6:1", "buffer"],
      ["12:15", "300"],
      ["15:22", "a.b"],
      ["16:22", "must be an Input ID"],
      ["17:31", "hr:40"],
    ] as const) {
      const line = text.split("\n").findIndex((candidate) => candidate.includes(`agent.yaml:${position} `));
      expect(
        `${position}: ${
          line < 0
            ? text
            : text
                .split("\n")
                .slice(line, line + 2)
                .join("\n")
        }`,
      ).toContain(words);
    }
  }
});

test.runIf(has.linuxFiles)(
  "a named pipe as a configuration is an error, instead of a wait for a writer, and a pipe of a shell is read",
  async () => {
    using folder = temporaryFolder();
    const [file, fifo] = [folder.file("agent.yaml"), folder.file("fifo")];
    writeFileSync(file, configuration(folder.file("data")));
    spawnSync("mkfifo", [fifo]);
    for (const command of ["run", "check"]) {
      const { status, stdout, stderr } = await tagferry([command, "-c", fifo]);
      expect(stdout + stderr).toContain("cannot be read: it is not a regular file");
      expect(status).toBe(78);
    }
    // As bash and zsh name the pipe of `<(…)`.
    for (const pipe of ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]) {
      const line = 'cat "$2" | "$0" "$1" check -c "$3"';
      const piped = spawnSync("sh", ["-c", line, process.execPath, program, file, pipe]);
      expect([String(piped.stderr), piped.status]).toEqual(["", 0]);
    }
  },
);

test("invalid YAML and a missing file are reported as such, with exit status 78", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("broken.yaml"), 'version: 1\nservice: { url: "http://\n');
  const broken = await tagferry(["run", "-c", folder.file("broken.yaml")]);
  expect(broken).toMatchObject({ status: 78, stderr: expect.stringMatching(/broken\.yaml:\d+:\d+ /) });
  const missing = await tagferry(["run", "-c", folder.file("missing.yaml")]);
  expect(missing).toMatchObject({ status: 78, stderr: expect.stringContaining("missing.yaml") });
});

test("a port in use is reported in one sentence, with exit status 1", async () => {
  using folder = temporaryFolder();
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  writeFileSync(folder.file("agent.yaml"), configuration(folder.file("data"), `127.0.0.1:${port}`));
  const { status, stderr } = await tagferry(["run", "-c", folder.file("agent.yaml")]);
  server.close();
  expect(status).toBe(1);
  expect(stderr).toContain(`127.0.0.1:${port}`);
  // The agent must fail before it opens a source.
  expect(stderr).not.toContain('"source":"demo"');
  expect(stderr).not.toMatch(/\n\s+at /);
});

test.each([
  ["http.tls", '{ listen: "127.0.0.1:0", tls: { certFile: FOLDER/no.pem, keyFile: FOLDER/no-key.pem } }', ""],
  ["otlp.caFile", '{ listen: "127.0.0.1:0" }', 'otlp: { url: "https://127.0.0.1:4318", caFile: FOLDER/no.pem }\n'],
])(
  "an unreadable file of %s is an error of the configuration: one sentence, exit status 78",
  async (option, http, more) => {
    using folder = temporaryFolder();
    const file = folder.file("agent.yaml");
    const text = configuration(folder.file("data")).replace('{ listen: "127.0.0.1:0" }', http) + more;
    writeFileSync(file, text.replaceAll("FOLDER", folder.path));
    const { status, stderr } = await tagferry(["run", "-c", file]);
    expect(status).toBe(78);
    expect(stderr).toMatch(new RegExp(`${option}.*no(-key)?\\.pem cannot be read: there is no such file`));
  },
);

test.runIf(has.signals)(
  "a second agent on a data directory is refused within a second, with exit status 75, and writes nothing",
  async () => {
    using folder = temporaryFolder();
    await using first = await startAgent({ folder: folder.path, configuration: configuration(folder.file("data")) });
    await eventually(async () => (await first.status()).buffer.appendedPoints > 0);
    const files = () => readdirSync(folder.file("data"), { recursive: true, encoding: "utf8" });
    // The first agent is suspended, so only the second one can write.
    await suspend(first.pid);
    const before = files();
    const { status, stderr } = await tagferry(["run", "-c", folder.file("tagferry.yaml")]);
    expect(files()).toEqual(before);
    resume(first.pid);
    expect(status).toBe(75);
    expect(stderr).toContain(folder.file("data"));
    expect(stderr).not.toMatch(/\n\s+at /);
    expect((await first.status()).agent.name).toBe("test");
  },
);

test("a data directory that cannot be created is reported in one sentence, with exit status 1", async () => {
  using folder = temporaryFolder();
  writeFileSync(folder.file("file"), "");
  writeFileSync(folder.file("agent.yaml"), configuration(folder.file("file/data")));
  const { status, stderr } = await tagferry(["run", "-c", folder.file("agent.yaml")]);
  expect(status).toBe(1);
  expect(stderr).toContain(folder.file("file/data"));
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("wrong use of the command line ends with exit status 2, and help with 0", async () => {
  expect(await tagferry(["rnu"])).toMatchObject({ status: 2, stderr: expect.stringContaining("run") });
  expect(await tagferry(["run", "--nope"])).toMatchObject({ status: 2 });
  const service = await tagferry(["service", "--listen", "nowhere"]);
  expect(service).toMatchObject({ status: 2, stderr: expect.stringContaining("--listen") });
  expect(service.stderr).toContain("service --help");
  expect(await tagferry(["--help"])).toMatchObject({ status: 0, stdout: expect.stringContaining("demo") });
  expect(await tagferry(["version"])).toMatchObject({ status: 0, stdout: expect.stringContaining("tagferry") });
});

test.runIf(has.signals)(
  "SIGTERM ends the agent with exit status 0 while its service and devices are unreachable",
  async () => {
    using folder = temporaryFolder();
    await using agent = await startAgent({ folder: folder.path, configuration: configuration(folder.file("data")) });
    expect(await agent.stop()).toBe(0);
  },
);
