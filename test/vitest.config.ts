import { defineConfig } from "vitest/config";

const suite = (name: string, include: string[], extra: object = {}) => ({
  extends: true as const,
  test: { name, include, ...extra },
});

// `*.peer.test.ts` need brokers and servers that npm does not bring; `.ci/run` installs those and sets TAGFERRY_PEERS.
const withPeers = process.env.TAGFERRY_PEERS !== undefined;
const files = (folder: string) => (withPeers ? [`test/${folder}/**/*.peer.test.ts`] : [`test/${folder}/**/*.test.ts`]);

export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    exclude: withPeers ? [] : ["**/*.peer.test.ts", "**/node_modules/**"],
    testTimeout: 90_000,
    hookTimeout: 90_000,
    pool: "forks",
    maxWorkers: 2,
    passWithNoTests: true,
    // For `.ci/run`, which adds up what several runs counted.
    reporters: process.env.TAGFERRY_RESULTS
      ? ["default", ["json", { outputFile: process.env.TAGFERRY_RESULTS }]]
      : ["default"],
    projects: [
      suite("architecture", withPeers ? [] : ["test/architecture.test.ts"]),
      suite("unit", files("unit")),
      suite("contract", files("contract")),
      suite("integration", files("integration")),
      suite("e2e", files("e2e"), { testTimeout: 240_000 }),
    ],
  },
});
