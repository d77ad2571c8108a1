// The agent without one safeguard: a point counts as stored once it is passed to the buffer, before it is on disk.
// Shows that
// the drills detect this.
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { run } from "../../src/cli/run/run.ts";
import { processConsole } from "../../src/cli/terminal/console.ts";
import type { PointBuffer } from "../../src/core/buffer.ts";

const config = process.argv.at(-1) ?? "";
using io = processConsole();
const signal = new AbortController().signal;

await run({ config }, io, {
  async openBuffer(options, runtime, opening): Promise<PointBuffer> {
    const buffer = await openDiskBuffer(options, runtime, opening);
    return {
      async append(points, appendOptions) {
        void buffer.append(points, { ...appendOptions, awaited: false }, signal);
      },
      reader: () => buffer.reader(),
      stats: () => buffer.stats(),
      [Symbol.asyncDispose]: () => buffer[Symbol.asyncDispose](),
    };
  },
});
process.exit();
