// tagferry and Telegraf in turn with the same broker, devices and server, judged by the same counting sink. Prints a
// table
// for each load. `npm run build && node test/bench/peers/peers.bench.ts --help`
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { loopVolume } from "../../support/loop-volume.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { loadOf, standardLoads } from "./load.ts";
import { type Program, tagferry, telegraf } from "./program.ts";
import { type Rounds, rounded, table } from "./report.ts";
import { measure, type Pace, secondsOf } from "./run.ts";
import { checkTelegraf, telegrafProgram } from "./telegraf-program.ts";

const help = `node test/bench/peers/peers.bench.ts [options] [load …]

loads      ${standardLoads.join(" ")}; mqtt-RATE for any rate; default: all of these

  --short            2 rounds of 15 s after 10 s, outage of 15 s; default: 5 rounds of 60 s after 60 s, outage of 60 s
  --rounds N         --warm-up SECONDS  --window SECONDS  --outage SECONDS
  --program NAME     repeated, in this order; default: tagferry and telegraf. telegraf-service: Telegraf with the requests
                     of the service. NAME=FOLDER: a build of tagferry, to compare two of them
  --telegraf FILE    a Telegraf that is there already; also TAGFERRY_TELEGRAF; default: built from its Go module, once
`;

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
    rounds: { type: "string" },
    "warm-up": { type: "string" },
    window: { type: "string" },
    outage: { type: "string" },
    program: { type: "string", multiple: true, default: ["tagferry", "telegraf"] },
    telegraf: { type: "string" },
  },
});
if (options.help) console.log(help);
else await bench();

async function bench(): Promise<void> {
  const rounds = Number(options.rounds ?? (options.short ? 2 : 5));
  const pace: Pace = {
    warmUpSeconds: Number(options["warm-up"] ?? (options.short ? 10 : 60)),
    windowSeconds: Number(options.window ?? (options.short ? 15 : 60)),
    outageSeconds: Number(options.outage ?? (options.short ? 15 : 60)),
  };
  const loads = (positionals.length > 0 ? positionals : standardLoads).map(loadOf);
  const programs: readonly Program[] = await Promise.all(options.program.map(programOf));
  const reference = programs.find(({ name }) => name.startsWith("telegraf"))?.name;

  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.on(signal, () => {
      // The first interrupt lets runs clean up; the second one exits at once.
      if (interrupt.signal.aborted) process.exit(1);
      interrupt.abort(new Error(`interrupted by ${signal}`));
    });

  using shared = temporaryFolder();
  const place = { shared: shared.path, hasLoopDevice: hasLoopDevice(), signal: interrupt.signal };
  const machine = `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`;
  console.log(`${machine}, load ${loadavg()[0]?.toFixed(1)}; ${rounds} rounds of ${JSON.stringify(pace)}`);
  if (!place.hasLoopDevice) console.log("no loop device with ext4 here: bytes at the block device are left out");
  const seconds = loads.reduce((sum, load) => sum + secondsOf(load, pace), 0) * rounds * programs.length;
  console.log(
    `${loads.length} loads × ${programs.length} programs: about ${Math.ceil(seconds / 60)} minutes, until ${new Date(Date.now() + seconds * 1_000).toISOString()}`,
  );

  const tables: string[] = [];
  for (const load of loads) {
    const results: readonly Rounds[] = programs.map(({ name }) => ({ program: name, figures: [], failures: [] }));
    for (let round = 0; round < rounds && !interrupt.signal.aborted; round++) {
      const order = [...programs.entries()];
      // Reverses the order in every other round, so that other load on the machine affects all programs alike.
      const turned = round % 2 === 0 ? order : order.toReversed();
      for (const [i, program] of turned) {
        if (interrupt.signal.aborted) break;
        const words = `${load.name} round ${round + 1} ${program.name}:`;
        try {
          const figures = await measure(program, load, pace, place);
          results[i]?.figures.push(figures);
          const text = Object.entries(figures).map(([name, value]) => `${name} ${rounded(value)}`);
          console.log(`${words} ${text.join(", ")}`);
        } catch (error) {
          const reason =
            error instanceof Error
              ? `${error.message}${error.cause instanceof Error ? `: ${error.cause.message}` : ""}`
              : String(error);
          results[i]?.failures.push(reason);
          console.log(`${words} failed: ${reason}`);
        }
      }
    }
    tables.push(table(load.title, results, reference));
  }
  console.log(`\n${tables.join("\n")}\nload ${loadavg()[0]?.toFixed(1)} at the end`);
  process.exitCode = interrupt.signal.aborted ? 1 : 0;
}

async function programOf(text: string): Promise<Program> {
  const given = options.telegraf ?? process.env["TAGFERRY_TELEGRAF"];
  if (text === "telegraf" || text === "telegraf-service") {
    const path = given === undefined ? await telegrafProgram() : resolve(given);
    await checkTelegraf(path);
    return telegraf(text, path, text === "telegraf" ? "lines" : "service");
  }
  const [name = "", folder = resolve(import.meta.dirname, "../../../dist")] = text.split("=");
  if (!existsSync(join(folder, "main.js"))) throw new Error(`no build of tagferry in ${folder}: npm run build`);
  return tagferry(name, resolve(folder));
}

function hasLoopDevice(): boolean {
  try {
    execFileSync("mkfs.ext4", ["-V"], { stdio: "ignore" });
    loopVolume("ext4", 64 * 2 ** 20)[Symbol.dispose]();
    return true;
  } catch {
    return false;
  }
}
