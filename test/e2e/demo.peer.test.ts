// `tagferry demo` as the README has it typed: it ends by itself, with everything there.
import { expect, test } from "vitest";
import { tagferry } from "../support/cli.ts";

test("a demo with a duration reads everything back, misses nothing, and ends with 0", {
  timeout: 180_000,
}, async () => {
  const { status, stdout, stderr } = await tagferry(["demo", "--duration", "15s"]);
  const last = stdout.trimEnd().split("\n").at(-1) ?? "";
  const [, read, stored] =
    /^demo: read (\d+), stored (\d+), missing 0, requests \d+, max rate [01]\.\d\d\/s, outage 5 s$/.exec(last) ?? [];
  expect(last).toMatch(/^demo: read [1-9]/);
  expect(stored).toBe(read);
  expect(stderr).not.toMatch(/never handed out/);
  expect(status).toBe(0);
});
