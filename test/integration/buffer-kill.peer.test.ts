// The long form of `buffer-kill.test.ts`. It is a peer test only because it takes long.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { expectToSurviveKills, startAppending } from "../support/kill-cycles.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const cycles = Number(process.env.TAGFERRY_KILL_CYCLES ?? 1_000);
/** Buffers in parallel. A process waits for the disk more than it computes. */
const writers = 4;

test(`no acknowledged point is lost by kill -9, ${cycles} times`, {
  timeout: 60_000 + cycles * 5_000,
}, async () => {
  using home = temporaryFolder();
  // Starting a process takes most of the time, so the processes share a compile cache. Node writes it only when a
  // process ends by itself; this first one does, because it cannot open its buffer.
  const env = { ...process.env, NODE_COMPILE_CACHE: home.file("cache") };
  writeFileSync(home.file("file"), "");
  await once(startAppending(home.file("file/buffer"), 0, env).child, "close");
  const each = Math.ceil(cycles / writers);

  await Promise.all(
    Array.from({ length: writers }, (_, i) => expectToSurviveKills(home.file(`buffer-${i}`), each, 11 + i, env)),
  );
});
