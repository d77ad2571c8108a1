// Memory of the released service at 5,000 signals: at the start, after full inserts during metadata queries, and after
// large answers. From source it takes 40 MiB more at the start and up to 130 later, since Node removes the types.
// `npm run build && node test/bench/service/memory.bench.ts [FOLDER ON A DISK] [INSERTS]`
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { integration, password } from "../../support/service.ts";
import { serviceClient } from "../../support/service-client.ts";
import { fullInsert, signals } from "./full-insert.ts";

const [parent = "/var/tmp", inserts = "12"] = process.argv.slice(2);
const entry = resolve(import.meta.dirname, "../../../dist/main.js");
if (!existsSync(entry)) throw new Error("run `npm run build` first");
const folder = mkdtempSync(join(parent, "tagferry-bench-"));
const flags = ["--listen", "127.0.0.1:0", "--data", folder, "--integration", integration, "--password", password];
const child = spawn(process.execPath, [entry, "service", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
const ended = once(child, "exit");
try {
  const lines = createInterface({ input: child.stderr });
  let url: string | undefined;
  for await (const line of lines) if ((url = /"url":"([^"]+)"/.exec(line)?.[1])) break;
  child.stderr.resume();
  using client = serviceClient(url ?? "");
  print("started");
  await client.post(fullInsert(0, 1));
  print(`${signals} signals`);
  let inserting = true;
  const select = (limit: number) =>
    client.call("admin.selectSignals", { integration, signals: { include: true, limit } });
  const asking = (async () => {
    while (inserting) await select(1);
  })();
  for (let n = 0; n < Number(inserts); n++) await client.post(fullInsert(n, 300));
  inserting = false;
  await asking;
  print(`${inserts} inserts of 7 MiB during metadata queries`);
  for (let n = 0; n < 4; n++) await Promise.all([select(1_000), select(1_000), select(1_000)]);
  print("12 answers of 1,000 signals");
} finally {
  child.kill("SIGKILL");
  await ended;
  rmSync(folder, { recursive: true });
}

function print(what: string): void {
  const status = readFileSync(`/proc/${child.pid}/status`, "utf8");
  const mebibytes = (name: string) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1_024);
  console.log(`${what}: ${mebibytes("VmRSS")} MiB resident, peak ${mebibytes("VmHWM")}`);
}
