// tagferry and Telegraf in turn with the same broker, devices and server, judged by the same counting sink. Prints a
// table for each load. `npm run build && node test/bench/peers/peers.bench.ts --help`
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { loadOf, standardLoads } from "./load.ts";
import { machine, openPlace, programOf } from "./place.ts";
import type { Program } from "./program.ts";
import { type Rounds, rounded, table } from "./report.ts";
import { failure, measure, type Pace, secondsOf } from "./run.ts";

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
  const programs: readonly Program[] = await Promise.all(
    options.program.map((text) => programOf(text, options.telegraf)),
  );
  const reference = programs.find(({ name }) => name.startsWith("telegraf"))?.name;

  using place = openPlace();
  console.log(`${machine()}; ${rounds} rounds of ${JSON.stringify(pace)}`);
  if (!place.hasLoopDevice) console.log("no loop device with ext4 here: bytes at the block device are left out");
  const seconds = loads.reduce((sum, load) => sum + secondsOf(load, pace), 0) * rounds * programs.length;
  console.log(
    `${loads.length} loads × ${programs.length} programs: about ${Math.ceil(seconds / 60)} minutes, until ${new Date(Date.now() + seconds * 1_000).toISOString()}`,
  );

  const tables: string[] = [];
  for (const load of loads) {
    const results: readonly Rounds[] = programs.map(({ name }) => ({ program: name, figures: [], failures: [] }));
    for (let round = 0; round < rounds && !place.signal.aborted; round++) {
      const order = [...programs.entries()];
      // Reverses the order in every other round, so that other load on the machine affects all programs alike.
      const turned = round % 2 === 0 ? order : order.toReversed();
      for (const [i, program] of turned) {
        if (place.signal.aborted) break;
        const words = `${load.name} round ${round + 1} ${program.name}:`;
        try {
          const figures = await measure(program, load, pace, place);
          results[i]?.figures.push(figures);
          const text = Object.entries(figures).map(([name, value]) => `${name} ${rounded(value)}`);
          console.log(`${words} ${text.join(", ")}`);
        } catch (error) {
          const reason = failure(error);
          results[i]?.failures.push(reason);
          console.log(`${words} failed: ${reason}`);
        }
      }
    }
    tables.push(table(load.title, results, reference));
  }
  console.log(`\n${tables.join("\n")}\nload ${loadavg()[0]?.toFixed(1)} at the end`);
  process.exitCode = place.signal.aborted ? 1 : 0;
}
