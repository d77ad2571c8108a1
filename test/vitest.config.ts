import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { configDefaults, defineConfig } from "vitest/config";
import type { Reporter } from "vitest/node";
import { longFiles, tierOf } from "./tiers.ts";

const suite = (name: string, include: string[], extra: object = {}) => ({
  extends: true as const,
  test: { name, include, ...extra },
});

const tier = tierOf(process.env);
const peers = tier === "peers";
const files = (folder: string) => [`test/${folder}/**/*${peers ? ".peer" : ""}.test.ts`];
const notPeers = ["**/*.peer.test.ts", ...configDefaults.exclude];

/** Results for `.ci/run`, which adds up those of several runs. */
const results = process.env.TAGFERRY_RESULTS;
/** What the results leave out: unhandled errors, and crashes of the process that runs a file. */
const errorsOutsideOfTests: Reporter = {
  onTestRunEnd(_modules, errors) {
    const messages = errors.map(({ message, cause }) => cause?.message ?? message);
    writeFileSync(`${results}.errors`, JSON.stringify(messages));
  },
};

if (tier === "quick")
  process.stderr.write(
    `quick tier: leaves out ${longFiles.length} long test files; npm run test:full runs them, too\n`,
  );

export default defineConfig({
  test: {
    root: resolve(import.meta.dirname, ".."),
    exclude: { quick: [...notPeers, ...longFiles], full: notPeers, peers: [] }[tier],
    testTimeout: 90_000,
    hookTimeout: 90_000,
    pool: "forks",
    // Most tests of networks wait for time-outs and restarts: two at a time leave most of two cores idle.
    maxWorkers: 3,
    // The files of a worker share its modules, which halves the processor time of the unit tests. Peer tests measure
    // memory and load libraries under test, so each has a process of its own.
    isolate: peers,
    passWithNoTests: true,
    reporters: results ? ["default", ["json", { outputFile: results }], errorsOutsideOfTests] : ["default"],
    projects: [
      suite("architecture", peers ? [] : ["test/architecture.test.ts"]),
      suite("unit", files("unit")),
      suite("contract", files("contract")),
      suite("integration", files("integration")),
      suite("e2e", files("e2e"), {
        testTimeout: 240_000,
        // These tests run the shipped bundle, not the sources.
        globalSetup: "test/support/built-program.ts",
        setupFiles: "test/support/use-built-program.ts",
      }),
    ],
  },
});
