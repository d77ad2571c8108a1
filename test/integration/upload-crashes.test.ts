// Agents that are killed repeatedly: requests are never too close or too large, and the service gets every point.
import { test } from "vitest";
import { crashAndRestart, expectCrashProof } from "../support/crash-restarts.ts";

test("after 40 crashes at random times with any answers no request came within a second, none was too large, none lost", {
  timeout: 900_000,
}, async () => {
  expectCrashProof(await crashAndRestart(40));
});
