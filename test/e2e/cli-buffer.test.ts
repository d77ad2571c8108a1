// The buffer commands on the data directory of a running agent, of a stopped one and on a damaged one.
import { spawnSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import type { InputId, Point } from "../../src/core/point.ts";
import { epochMicros } from "../../src/core/point.ts";
import { command } from "../support/command.ts";
import { has } from "../support/platform.ts";
import { program } from "../support/program.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const never = new AbortController().signal;
const t0 = 1_767_225_600_000_000;
const dangerous = "-2+3/cmd";

function point(input: string, second: number, value: number): Point {
  return { input: input as InputId, time: epochMicros(t0 + second * 1e6), value };
}

async function open(dataDir: string) {
  const config = bufferOptions.parse({ reserveFreeDisk: "0", sync: "1ms" });
  return openDiskBuffer({ directory: join(dataDir, "buffer"), integration: "plant", config }, testRuntime(), never);
}

/** Ten appends of three points each. */
async function filled(dataDir: string): Promise<void> {
  await using buffer = await open(dataDir);
  for (let i = 0; i < 10; i++)
    await buffer.append(
      [point("hall.a", i, i / 8), point(dangerous, i, -i), point("hall.b", i, i * 1e30)],
      { awaited: true },
      never,
    );
}

const segments = (dataDir: string) =>
  readdirSync(join(dataDir, "buffer"))
    .filter((name) => name.startsWith("seg-"))
    .map((name) => join(dataDir, "buffer", name));

/** Flips one bit in the record that holds the points of second 4. */
function damage(dataDir: string): void {
  for (const path of segments(dataDir)) {
    const bytes = readFileSync(path);
    const at = bytes.indexOf(Buffer.from(Float64Array.of(t0 + 4e6).buffer));
    if (at < 0) continue;
    bytes[at + 32]! ^= 1;
    writeFileSync(path, bytes);
  }
}

test("a buffer is inspected while the agent uses it", async () => {
  using home = temporaryFolder();
  await using buffer = await open(home.path);
  await buffer.append([point("hall.a", 0, 1), point("hall.b", 1, 2)], { awaited: true }, never);

  const [stat, json, verified, exported] = await Promise.all([
    command(["buffer", "stat", home.path]),
    command(["buffer", "stat", home.file("buffer"), "--json"]),
    command(["buffer", "verify", home.path]),
    command(["buffer", "export", home.path, "--format", "ndjson", "--undelivered"]),
  ]);

  expect(stat.status).toBe(0);
  expect(stat.stdout).toContain("2 points in 1 segment");
  expect(stat.stdout).toContain("2 points to deliver, from 2026-01-01T00:00:00Z to 2026-01-01T00:00:01Z");
  expect(stat.stdout).toMatch(/\n {2}seg-\S+ {2}hot, open .* 2 points {2}2 points to deliver {2}2 inputs\n/);
  expect(JSON.parse(json.stdout)).toMatchObject({ points: 2, unsettledPoints: 2, lostPoints: 0, latest: t0 + 1e6 });
  expect(verified).toMatchObject({ status: 0, stderr: "" });
  expect(verified.stdout).toBe(`${home.file("buffer")}: 2 points in 1 segment can be read, no damage\n`);
  expect(exported).toMatchObject({ status: 0, stderr: "2 points exported\n" });
  expect(exported.stdout).toBe(`{"input":"hall.a","time":"2026-01-01T00:00:00Z","value":1}
{"input":"hall.b","time":"2026-01-01T00:00:01Z","value":2}
`);
});

test("an export is CSV that no spreadsheet evaluates, with every value bit for bit", async () => {
  using home = temporaryFolder();
  await filled(home.path);
  const { status, stdout, stderr } = await command(["buffer", "export", home.path]);
  const lines = stdout.trimEnd().split("\n");
  expect({ status, stderr, lines: lines.length }).toEqual({ status: 0, stderr: "30 points exported\n", lines: 31 });
  expect(lines[0]).toBe("input,time,value");
  expect(lines).toContain("hall.a,2026-01-01T00:00:03Z,0.375");
  expect(lines).toContain("hall.b,2026-01-01T00:00:09Z,9e+30");
  expect(lines).toContain(`'${dangerous},2026-01-01T00:00:09Z,-9`);
});

test("all readable points of a damaged buffer are exported, and the last line names the others", async () => {
  using home = temporaryFolder();
  await filled(home.path);
  damage(home.path);
  const before = readdirSync(home.file("buffer")).map((name) => readFileSync(join(home.file("buffer"), name)));

  const exported = await command(["buffer", "export", home.path]);
  const verified = await command(["buffer", "verify", home.path]);

  expect(exported.status).toBe(1);
  expect(exported.stdout.trimEnd().split("\n")).toHaveLength(28);
  expect(exported.stdout).not.toContain("00:00:04Z");
  expect(exported.stderr).toBe(
    "27 points exported; 3 points cannot be read: the buffer is damaged, see tagferry buffer verify\n",
  );
  expect(verified.status).toBe(1);
  expect(verified.stdout).toMatch(
    /seg-\S+: \d+ bytes damaged at \d+, 3 points lost, from 2026-01-01T00:00:04Z to .*\n/,
  );
  expect(verified.stdout).toMatch(/27 points in \d segments? can be read, 3 points lost\n$/);
  const after = readdirSync(home.file("buffer")).map((name) => readFileSync(join(home.file("buffer"), name)));
  expect(after).toEqual(before);
});

test("the points of segments copied off a broken disk are exported as well", async () => {
  using home = temporaryFolder();
  await filled(home.path);
  mkdirSync(home.file("salvaged"));
  for (const path of segments(home.path)) copyFileSync(path, join(home.file("salvaged"), basename(path)));
  const { status, stdout } = await command(["buffer", "export", home.file("salvaged")]);
  expect(status).toBe(0);
  expect(stdout.trimEnd().split("\n")).toHaveLength(31);
  const verified = await command(["buffer", "verify", home.file("salvaged"), "--json"]);
  expect(verified.status).toBe(1);
  expect(JSON.parse(verified.stdout)).toMatchObject({
    ok: false,
    points: 30,
    damage: ["the counters are damaged or missing: delivered points will be sent again"],
  });
});

test("a folder without a buffer, a missing folder and an unknown format have different errors", async () => {
  using home = temporaryFolder();
  const empty = await command(["buffer", "stat", home.path]);
  expect(empty).toMatchObject({ status: 1, stdout: "" });
  expect(empty.stderr).toContain(`${home.path} holds no buffer\n  name the folder that agent.dataDir names`);
  const missing = await command(["buffer", "export", home.file("nowhere")]);
  expect(missing).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining("there is no such folder") });
  writeFileSync(home.file("mistyped"), "");
  const mistyped = await command(["buffer", "stat", home.file("mistyped")]);
  expect(mistyped).toMatchObject({ status: 1, stdout: "" });
  // The remedy must not be to move the user's file away.
  expect(mistyped.stderr).toMatch(
    /mistyped holds no buffer: it is a file\n {2}name the folder that agent\.dataDir names/,
  );
  const format = await command(["buffer", "export", home.path, "--format", "xml"]);
  expect(format).toMatchObject({ status: 2, stderr: expect.stringContaining("Allowed choices are csv, ndjson") });
});

test("a buffer of a newer version is refused", async () => {
  using home = temporaryFolder();
  await filled(home.path);
  cpSync(home.file("buffer"), home.file("newer"), { recursive: true });
  rmSync(join(home.file("newer"), "LOCK"), { force: true });
  const line = `tagferry buffer 99 ${"0".repeat(32)}`;
  const { crc32 } = await import("../../src/buffer/disk/files/bytes.ts");
  writeFileSync(
    join(home.file("newer"), "FORMAT"),
    `${line} ${crc32(new TextEncoder().encode(line)).toString(16).padStart(8, "0")}\n`,
  );
  const { status, stderr } = await command(["buffer", "verify", home.file("newer")]);
  expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining("install that version again") });
});

test("an export shows its progress, and ^C ends it with a message and exit status 1", async () => {
  using home = temporaryFolder();
  await filled(home.path);
  const whole = await command(["buffer", "verify", home.path]);
  expect(whole.progress).toEqual(["[------------------------] 0 %, 0 of 1 segments", undefined]);
  const stopped = await command(["buffer", "export", home.path], { signal: AbortSignal.abort(new Error("^C")) });
  expect(stopped).toMatchObject({ status: 1, stderr: "tagferry: stopped before the end\n" });
});

test.runIf(has.shell)("a reader that closes the pipe ends an export without a message", async () => {
  using home = temporaryFolder();
  {
    await using buffer = await open(home.path);
    const points = Array.from({ length: 100_000 }, (_, i) => point("hall.a", i, i));
    await buffer.append(points, { awaited: true }, never);
  }
  const shell = `"${process.execPath}" "${program}" buffer export "${home.path}" | head -1; echo "status \${PIPESTATUS[0]}"`;
  const { stdout, stderr } = spawnSync("bash", ["-c", shell], { encoding: "utf8" });
  expect({ stdout, stderr }).toEqual({ stdout: "input,time,value\nstatus 0\n", stderr: "" });
});
