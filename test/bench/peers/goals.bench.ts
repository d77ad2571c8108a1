// The figures of the project next to their goals, in one run of about 25 minutes on a quiet machine: each load with
// tagferry and Telegraf in turn, rounds until the time is up, medians. `npm run build && node test/bench/peers/goals.bench.ts`
import { execFile } from "node:child_process";
import { join } from "node:path";
import { parseArgs, promisify } from "node:util";
import { loopVolume } from "../../support/loop-volume.ts";
import { median } from "../agent/process-usage.ts";
import { loadOf } from "./load.ts";
import { machine, openPlace, programOf } from "./place.ts";
import { rounded } from "./report.ts";
import { type Figures, failure, measure, type Pace, secondsOf } from "./run.ts";

interface Goal {
  readonly load: string;
  /** A column of the figures. */
  readonly column: string;
  readonly most?: number;
  /** Largest ratio to Telegraf, or to `reference`. */
  readonly mostTimes?: number;
  readonly leastTimes?: number;
  readonly reference?: string;
}

const cost = "% of a core";
const overload = "mqtt-45000";
const goals: readonly Goal[] = [
  { load: "mqtt-1000", column: cost, mostTimes: 1.5 },
  { load: "mqtt-1000", column: cost, mostTimes: 1, reference: "telegraf-service" },
  { load: "mqtt-1000", column: "device kB/s", most: 200 },
  { load: "mqtt-10000", column: cost, mostTimes: 0.8 },
  { load: overload, column: "received/s", leastTimes: 1.5 },
  { load: "modbus", column: cost, mostTimes: 1.2 },
  { load: "opcua", column: cost, mostTimes: 2 },
  ...["mqtt-1000", "mqtt-10000", "modbus", "opcua"].flatMap((load) => [
    { load, column: "MB", most: 110 },
    { load, column: "MB", mostTimes: 1.4 },
    // Without a goal: the ratio holds for slow processors too.
    { load, column: "user µs a point" },
  ]),
  { load: "idle-mqtt", column: cost, most: 0.2 },
  { load: "idle-mqtt", column: "device kB/s", most: 1 },
  { load: "idle-mqtt", column: "MB", most: 75 },
  { load: "idle-mqtt", column: "start s", most: 0.2 },
  { load: "idle-all", column: cost, most: 0.2 },
  { load: "idle-all", column: "device kB/s", most: 1 },
  { load: "idle-all", column: "MB", most: 110 },
  { load: "outage", column: "caught up after s", most: 4 },
  { load: "outage", column: "most MB", most: 120 },
  { load: "outage", column: "missing", most: 0 },
  { load: "kill", column: "missing", most: 0 },
  // Ten kills, each of which repeats one request at most: a second of 500 messages.
  { load: "kill", column: "sent again", most: 5_000 },
  { load: "commit", column: "points/s", leastTimes: 0.8, reference: "node:sqlite FULL" },
  { load: "commit", column: "bytes", mostTimes: 0.6, reference: "node:sqlite FULL" },
];

const { values: options } = parseArgs({
  options: { minutes: { type: "string", default: "25" }, telegraf: { type: "string" } },
});
const end = performance.now() + Number(options.minutes) * 60_000;
const steady: Pace = { warmUpSeconds: 30, windowSeconds: 20, outageSeconds: 60 };
// In its first minute, an idle agent still writes what it has found out at the start.
const idle: Pace = { ...steady, warmUpSeconds: 60, windowSeconds: 30 };

/** By load and program, the figures of its runs. */
const figures = new Map<string, Figures[]>();
using place = openPlace();
console.log(machine());
const names = ["tagferry", "telegraf", "telegraf-service"];
const programs = await Promise.all(names.map((name) => programOf(name, options.telegraf)));
for (let round = 0; !place.signal.aborted; round++) {
  let ran = 0;
  for (const load of new Set(goals.map((goal) => goal.load))) {
    const compared = new Set(goals.filter((goal) => goal.load === load).map(referenceOf));
    for (const program of round % 2 === 0 ? programs : programs.toReversed()) {
      if (load === "commit" || place.signal.aborted) continue;
      if (program.name !== "tagferry" && !compared.has(program.name)) continue;
      const { procedure } = loadOf(load);
      const pace = procedure === "idle" ? idle : steady;
      // The first round is complete, whatever time it takes.
      if (round > 0 && performance.now() + secondsOf(loadOf(load), pace) * 1_000 > end) continue;
      ran++;
      await measure(program, loadOf(load), pace, place).then(
        (run) => note(load, program.name, run),
        (error: unknown) => console.log(`${load} ${program.name} failed: ${failure(error)}`),
      );
    }
  }
  if (round === 0 && !place.signal.aborted) await commits();
  if (ran === 0) break;
}
console.log(`\n| load | figure | tagferry | compared with | goal | met | rounds |\n|---|---|---|---|---|---|---|`);
for (const goal of goals) console.log(row(goal));
console.log(`\n${machine()} at the end`);

function note(load: string, program: string, run: Figures): void {
  const all = figures.get(`${load} ${program}`) ?? [];
  figures.set(`${load} ${program}`, [...all, run]);
  const text = Object.entries(run).map(([name, value]) => `${name} ${rounded(value)}`);
  console.log(`${load} ${program}: ${text.join(", ")}`);
}

/** The program that a goal compares with. Undefined: the goal is absolute. */
function referenceOf({ most, reference = "telegraf" }: Goal): string | undefined {
  return most === undefined ? reference : undefined;
}

/** Commits of 100 points next to SQLite, on a volume of their own. */
async function commits(): Promise<void> {
  if (!place.hasLoopDevice) return;
  using volume = loopVolume("ext4", 2 ** 30);
  const bench = join(import.meta.dirname, "../buffer/append.bench.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [bench, volume.path, "10", "100"]);
  for (const [, name = "", speed, bytes] of stdout.matchAll(/commit, (.+): (\d+) points\/s .*, ([\d.]+) bytes per/g))
    note("commit", name, { "points/s": Number(speed), bytes: Number(bytes) });
}

function row(goal: Goal): string {
  const { load, column, most, mostTimes, leastTimes } = goal;
  const reference = referenceOf(goal);
  const of = (program: string) => (figures.get(`${load} ${program}`) ?? []).flatMap((run) => run[column] ?? []);
  const own = median(of("tagferry"));
  const other = median(of(reference ?? ""));
  const [value, bound, isLeast] = [
    own / (most === undefined ? other : 1),
    most ?? mostTimes ?? leastTimes,
    leastTimes !== undefined,
  ];
  const isMet =
    bound === undefined || Number.isNaN(value) ? "–" : (isLeast ? value >= bound : value <= bound) ? "yes" : "no";
  const against = reference === undefined ? "–" : `${reference} ${rounded(other)} (${rounded(value)} ×)`;
  const aim = bound === undefined ? "–" : `${isLeast ? "≥" : "≤"} ${bound}${most === undefined ? " ×" : ""}`;
  return `| ${load} | ${column} | ${rounded(own)} | ${against} | ${aim} | ${isMet} | ${of("tagferry").length} |`;
}
