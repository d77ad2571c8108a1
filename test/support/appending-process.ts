// A process that appends to a buffer until it is killed. It prints a first line when it is ready, and then the number
// of each acknowledged append. `node appending-process.ts DIRECTORY FIRST`.
import { writeSync } from "node:fs";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { testRuntime } from "./runtime.ts";

const [directory = "", first = "0"] = process.argv.slice(2);
const pause = new Int32Array(new SharedArrayBuffer(4));
const never = new AbortController().signal;
const config = bufferOptions.parse({ reserveFreeDisk: "0", ackDelay: "0" });

/** Retries while the pipe is full because its reader is behind. */
function say(line: string): void {
  for (;;)
    try {
      writeSync(1, `${line}\n`);
      return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
      Atomics.wait(pause, 0, 0, 1);
    }
}

try {
  const buffer = await openDiskBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  say("ready");
  for (let i = Number(first); ; i++) {
    const points = [0, 1, 2].map((k) => ({
      input: `tag.${k}` as InputId,
      time: epochMicros(1.7e15 + i * 1_000),
      value: i + k / 8,
    }));
    // A few at a time, as several sources would.
    const appended = buffer.append(points, { awaited: true }, never).then(() => say(String(i)));
    if (i % 4 === 3) await appended;
  }
} catch (error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  say(`failed ${code}`);
}
