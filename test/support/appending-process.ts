// A process that appends to a buffer until it is killed, and says on standard output what was acknowledged to it: the
// first line when it is ready, then one number for each append. `node appending-process.ts DIRECTORY FIRST`.
import { writeSync } from "node:fs";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { openBuffer } from "../../src/buffer/registry.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { testRuntime } from "./runtime.ts";

const [directory = "", first = "0"] = process.argv.slice(2);
const never = new AbortController().signal;
const config = bufferOptions.parse({ reserveFreeDisk: "0", ackDelay: "0" });
try {
  const buffer = await openBuffer({ directory, integration: "plant", config }, testRuntime(), never);
  writeSync(1, "ready\n");
  for (let i = Number(first); ; i++) {
    const points = [0, 1, 2].map((k) => ({
      input: `tag.${k}` as InputId,
      time: epochMicros(1.7e15 + i * 1_000),
      value: i + k / 8,
    }));
    // A few at a time, as from several sources.
    const appended = buffer.append(points, { awaited: true }, never).then(() => writeSync(1, `${i}\n`));
    if (i % 4 === 3) await appended;
  }
} catch (error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  writeSync(1, `failed ${code}\n`);
}
