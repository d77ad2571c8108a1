// Processes that append to a buffer on a real disk and are killed at any moment.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { seeded, testRuntime } from "./runtime.ts";

const script = join(import.meta.dirname, "appending-process.ts");
const never = new AbortController().signal;

/** Collects the lines that a process prints. `ready` resolves with its first acknowledged append. */
export function startAppending(
  directory: string,
  first: number,
  env: NodeJS.ProcessEnv = process.env,
): { child: ChildProcess; lines: string[]; ready: Promise<void> } {
  const child = spawn(process.execPath, [script, directory, String(first)], {
    stdio: ["ignore", "pipe", "inherit"],
    env,
  });
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
  await using buffer = await openDiskBuffer({ directory, integration: "plant", config }, testRuntime(), never);
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

/** Appends and kills this many times in a row, then reads everything back. No acknowledged point may be lost. */
export async function expectToSurviveKills(
  directory: string,
  cycles: number,
  seed: number,
  env = process.env,
): Promise<void> {
  const random = seeded(seed);
  const acknowledged: number[] = [];
  let next = 0;
  for (let cycle = 0; cycle < cycles; cycle++) {
    const { child, lines, ready } = startAppending(directory, next, env);
    const closed = once(child, "close");
    await ready;
    // The kill must come at a random moment.
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
}
