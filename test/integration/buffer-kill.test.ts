// The buffer on a real disk under processes that are killed at any moment.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { openBuffer } from "../../src/buffer/registry.ts";
import { seeded, testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const script = join(import.meta.dirname, "../support/appending-process.ts");
const cycles = Number(process.env.TAGFERRY_KILL_CYCLES ?? 16);
const never = new AbortController().signal;

/** Collects the lines a process says. `ready` once something was acknowledged to it. */
function start(directory: string, first: number): { child: ChildProcess; lines: string[]; ready: Promise<void> } {
  const child = spawn(process.execPath, [script, directory, String(first)], { stdio: ["ignore", "pipe", "inherit"] });
  const lines: string[] = [];
  let rest = "";
  const ready = Promise.withResolvers<void>();
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts);
    if (lines.length > 1) ready.resolve();
  });
  return { child, lines, ready: ready.promise };
}

async function openAndRead(directory: string) {
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  await using buffer = await openBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  await using reader = await buffer.reader();
  const found = new Map<string, number>();
  for (;;) {
    const block = await reader.take("backlog", { wait: false, maxPoints: 1e6 }, never);
    if (!block) break;
    for (const { input, times, values } of block.series)
      times.forEach((time, i) => void found.set(`${input} ${time}`, values[i]!));
  }
  return { found, stats: buffer.stats() };
}

test(`nothing that was acknowledged is lost by kill -9, ${cycles} times in a row`, {
  timeout: 60_000 + cycles * 1_500,
}, async () => {
  using home = temporaryFolder();
  const directory = home.file("buffer");
  const random = seeded(11);
  const acknowledged: number[] = [];
  let next = 0;
  for (let cycle = 0; cycle < cycles; cycle++) {
    const { child, lines, ready } = start(directory, next);
    const closed = once(child, "close");
    await ready;
    // The moment of the kill is the point of the test: any will do, each time another.
    await new Promise((resolve) => setTimeout(resolve, random() * 25));
    child.kill("SIGKILL");
    await closed;
    const numbers = lines.filter((line) => /^\d+$/.test(line)).map(Number);
    expect(lines[0]).toBe("ready");
    acknowledged.push(...numbers);
    next = Math.max(next, ...numbers) + 1_000;
  }

  const { found, stats } = await openAndRead(directory);

  expect(acknowledged.length).toBeGreaterThan(cycles);
  const lost = acknowledged.filter((i) =>
    [0, 1, 2].some((k) => found.get(`tag.${k} ${1.7e15 + i * 1_000}`) !== i + k / 8),
  );
  expect(lost).toEqual([]);
  expect(stats.losses).toEqual([]);
  expect(found.size).toBe(stats.unsettledPoints);
});

test("a second process on the same folder is refused within a second and writes nothing", async () => {
  using home = temporaryFolder();
  const directory = home.file("buffer");
  const config = bufferOptions.parse({ reserveFreeDisk: "0" });
  await using _buffer = await openBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  const content = () =>
    readdirSync(directory)
      .toSorted()
      .map((name) => [name, name === "LOCK" ? "" : readFileSync(join(directory, name), "hex")]);
  const before = content();

  const { child, lines } = start(directory, 0);
  await once(child, "close");

  expect(lines).toEqual(["failed DATA_DIR_IN_USE"]);
  expect(content()).toEqual(before);
});
