// Every property test takes its seed and number of runs from `property.ts`, so that the long form applies to all.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");

test("no property test sets its own seed or number of runs", () => {
  const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".test.ts"));
  const withProperties = files.filter((name) => /\bfc\.(?:assert|check|sample)\(/.test(read(name)));
  expect(withProperties.length).toBeGreaterThan(50);

  expect(withProperties.filter((name) => !/\bruns\(/.test(read(name)) || read(name).includes("numRuns"))).toEqual([]);
});

function read(name: string): string {
  return readFileSync(join(root, name), "utf8");
}
