import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { longFiles, tierOf } from "../../tiers.ts";

const root = resolve(import.meta.dirname, "../../..");

test("npm test runs the quick tier; npm cit and every other command run the full one", () => {
  expect(tierOf({ npm_lifecycle_event: "test", npm_command: "test" })).toBe("quick");
  expect(tierOf({ npm_lifecycle_event: "test", npm_command: "install-ci-test" })).toBe("full");
  expect(tierOf({ npm_lifecycle_event: "test", npm_command: "run" })).toBe("full");
  expect(tierOf({ npm_lifecycle_event: "test:full", npm_command: "run" })).toBe("full");
  expect(tierOf({ npm_lifecycle_event: "npx", npm_command: "exec" })).toBe("full");
  expect(tierOf({})).toBe("full");
});

test("TAGFERRY_PEERS selects the peer tests, however the run was started", () => {
  expect(tierOf({ TAGFERRY_PEERS: "1", npm_lifecycle_event: "test", npm_command: "test" })).toBe("peers");
});

test("every file left out of the quick tier exists and is in the full tier", () => {
  expect(longFiles.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  expect(longFiles.filter((file) => !file.endsWith(".test.ts") || file.endsWith(".peer.test.ts"))).toEqual([]);
});
