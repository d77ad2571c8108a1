// Runs a part of this suite in another process: on another Node, or while its traffic is captured.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { temporaryFolder } from "./temporary-folder.ts";

const root = join(import.meta.dirname, "../..");
const results = z.object({ numPassedTests: z.int(), numFailedTests: z.int(), success: z.boolean() });

export interface SuiteRun {
  /** The files to run, as parts of their names. */
  readonly files: readonly string[];
  /** Whether they are `*.peer.test.ts`. */
  readonly peers: boolean;
  /** Default: the Node that runs this process. */
  readonly node?: string;
  /** A command with arguments that runs the command after them. */
  readonly within?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
}

/** Resolves with the counts. Rejects with the whole output when a test failed. */
export async function runSuite({ files, peers, node = process.execPath, within = [], variables = {} }: SuiteRun) {
  using folder = temporaryFolder();
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(VITEST|TAGFERRY_|NODE_OPTIONS|NODE_V8|npm_)/.test(name),
  );
  const [command = "", ...args] = [
    ...within,
    node,
    "node_modules/vitest/vitest.mjs",
    "run",
    "--config",
    "test/vitest.config.ts",
    ...files,
  ];
  const child = spawn(command, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...Object.fromEntries(inherited),
      ...(peers ? { TAGFERRY_PEERS: "1" } : {}),
      TAGFERRY_RESULTS: folder.file("results.json"),
      ...variables,
    },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      said += String(chunk);
    });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw new Error(`ended with ${code}:\n${said}`);
  return results.parse(JSON.parse(await readFile(folder.file("results.json"), "utf8")));
}
