// An agent that dies again and again: the service never sees requests too close or too large, and in the end has all.
import { test } from "vitest";
import { crashAndRestart, expectCrashProof } from "../support/crash-restarts.ts";

test("40 crashes at any moment, whatever the answers: never two requests within a second, none too large, nothing lost", {
  timeout: 900_000,
}, async () => {
  expectCrashProof(await crashAndRestart(40));
});
