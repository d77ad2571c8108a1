// A process is killed before each of its calls to a real disk in turn. It is a peer test because it takes long.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { openStore } from "../support/disk-store.ts";
import { problemAfterRestart } from "../support/storage-script.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";

const script = join(import.meta.dirname, "../support/scripted-process.ts");

async function killBefore(call: number, home: TemporaryFolder, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const [folder, file] = [home.file(`buffer-${call}`), home.file(`promised-${call}`)];
  const child = spawn(process.execPath, [script, folder, String(call), file], {
    stdio: ["ignore", "ignore", "inherit"],
    env,
  });
  await once(child, "close");
  if (child.signalCode !== "SIGKILL" || !existsSync(file)) return `call ${call}: was not killed`;
  const promised: Record<string, number[]> = JSON.parse(readFileSync(file, "utf8"));
  const setOf = (name: string) => new Set(promised[name]);
  const run = {
    acknowledged: setOf("acknowledged"),
    unsure: setOf("unsure"),
    settled: setOf("settled"),
    done: setOf("done"),
    returned: setOf("returned"),
    repeated: setOf("repeated"),
  };
  const open = () => openStore(nodeDisk(), { folder, at: 1_000, seed: 77 });
  const problem = problemAfterRestart(open, { ...run, errors: [] }, "killed");
  rmSync(folder, { recursive: true, force: true });
  return problem && `call ${call}: ${problem}`;
}

test("a process killed before any of its disk calls leaves a buffer that opens with every acknowledged point", {
  timeout: 900_000,
}, async () => {
  using home = temporaryFolder();
  const env = { ...process.env, NODE_COMPILE_CACHE: home.file("cache") };
  const whole = spawnSync(process.execPath, [script, home.file("whole"), "0", ""], { env, encoding: "utf8" });
  const calls = Number(whole.stdout);
  expect(calls).toBeGreaterThan(300);
  const problems: string[] = [];
  let next = 1;

  const inTurn = async () => {
    while (next <= calls) {
      const problem = await killBefore(next++, home, env);
      if (problem !== undefined) problems.push(problem);
    }
  };
  await Promise.all([inTurn(), inTurn(), inTurn()]);

  expect(problems).toEqual([]);
});
