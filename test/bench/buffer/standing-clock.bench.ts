// The cost of a message while device clocks stand still: each is mapped and durably appended, 100 at a time. Processor
// time of the process with all its threads per 5,000 messages, and of the bare appends with a running clock for
// comparison. The cost must stay constant from the first 5,000 to the last.
// Run: node test/bench/buffer/standing-clock.bench.ts [MESSAGES] [INPUTS] [FOLDER ON A DISK]
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import { reading, rule, tagId } from "../../support/mapping.ts";
import { testRuntime } from "../../support/runtime.ts";

const [messages = 100_000, inputs = 1] = process.argv.slice(2, 4).map(Number);
const parent = process.argv[4] ?? "/var/tmp";
const slice = 5_000;
const atOnce = 100;
const never = new AbortController().signal;
const config = bufferOptions.parse({ ackDelay: "0", reserveFreeDisk: "0" });
const start = 1.767e15;

async function run(name: string, folder: string, timeOf: (n: number) => number): Promise<void> {
  await using buffer = await openDiskBuffer({ directory: folder, integration: "bench", config }, testRuntime(), never);
  const rules = Array.from({ length: inputs }, (_, i) => rule({ input: `hall.t${i}` }));
  using mapping = openMapping({ source: "bench", rules, catalog: { describe() {} } }, testRuntime());
  const message = (n: number) => {
    const time = epochMicros(timeOf(n));
    return mapping.map({ readings: [reading(n, { tag: tagId(n % inputs), time })], descriptions: [] });
  };
  const figures: string[] = [];
  for (let n = 0; n < messages; ) {
    const before = process.cpuUsage();
    for (const end = n + slice; n < end; n += atOnce)
      await Promise.all(
        Array.from({ length: atOnce }, (_, i) => buffer.append(message(n + i), { awaited: true }, never)),
      );
    const { user, system } = process.cpuUsage(before);
    figures.push(((user + system) / 1e6).toFixed(2));
  }
  console.log(`${name}: ${figures.join(" ")} s of processor for each ${slice} messages`);
}

const folder = mkdtempSync(join(parent, "tagferry-bench-"));
try {
  await run("clock runs         ", join(folder, "runs"), (n) => start + n * 1_000);
  await run("clock stands still ", join(folder, "stands"), () => start);
  console.log(`${messages} messages, ${inputs} inputs, load ${loadavg()[0]?.toFixed(1)}, Node ${process.version}`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
