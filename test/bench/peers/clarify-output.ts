// Telegraf's `outputs.clarify` against the local service at its default rates. The service refuses and loses answers
// for a while. In the end each value that the broker received is compared. Needs Go for the first build of Telegraf.
// Run: node test/bench/peers/clarify-output.ts [seconds]
import { setTimeout as sleep } from "node:timers/promises";
import { type Fault, parseFault } from "../../../src/service/config/fault.ts";
import { eventually } from "../../support/eventually.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { integration, testService } from "../../support/service.ts";
import { resultOf } from "../../support/service-items.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { telegraf } from "./program.ts";
import { telegrafProgram } from "./telegraf-program.ts";

const seconds = Number(process.argv[2] ?? 20);
const tags = 50;
const step = 100;
const faults = ["cutAfter,first=2", "status=503,after=2,first=2", "garbage,after=4,first=1"];

using folder = temporaryFolder();
await using service = await testService({ data: folder.file("data"), throttle: "queue" });
await using broker = await openMosquitto();
const { port, username, password } = broker;
const plant = { mqtt: { port, username, password }, backlog: 1_000_000 };
const sinkUrl = service.url.replace(/\/v1$/, "");
await using program = telegraf("telegraf", await telegrafProgram(), "service").start({
  plant,
  sinkUrl,
  home: folder.path,
  data: folder.path,
});
await Promise.race([program.ended, eventually(() => broker.log.includes("as telegraf"))]);
await sleep(1_000); // Telegraf subscribes after it has connected, and does not say so.

const publisher = await broker.publisher();
const sent = new Map<string, Map<number, number>>();
const start = Math.floor(Date.now() / 1_000) * 1_000 - seconds * 1_000;
for (let n = 0; n < (seconds * 1_000) / step; n++) {
  if (n === Math.floor((seconds * 500) / step)) service.setFaults(faults.map(parsedFault));
  const ts = start + n * step;
  const publishing = Array.from({ length: tags }, async (_, tag) => {
    const v = Math.sin(n + tag) * 10 ** (tag % 12) - (tag % 2);
    const input = `mqtt.v.plant/${tag % 5}/t${tag}`;
    if (!sent.has(input)) sent.set(input, new Map());
    sent.get(input)?.set(ts, v);
    await publisher.publishAsync(`plant/${tag % 5}/t${tag}`, JSON.stringify({ ts, v }), { qos: 1 });
  });
  await Promise.race([program.ended, Promise.all([sleep(step), ...publishing])]);
}

const expected = tags * Math.ceil((seconds * 1_000) / step);
const stored = await untilStored();
let wrong = 0;
for (const [input, values] of sent)
  for (const [ts, v] of values) if (!Object.is(stored.get(input)?.get(ts), v)) wrong++;
const calls = [...service.counters()].filter(([method]) => method.startsWith("integration."));
console.log(`sent ${expected} values of ${tags} inputs, with the faults ${faults.join("; ")}`);
console.log(`missing or different: ${wrong}`);
for (const [method, { requests, maxStartsPerSecond }] of calls)
  console.log(`${method}: ${requests} calls, at most ${maxStartsPerSecond} a second`);
process.exitCode = wrong === 0 ? 0 : 1;

/** Resolves when every value is stored, at the latest after a minute: Telegraf repeats a failed write. */
async function untilStored(): Promise<Map<string, Map<number, number>>> {
  for (let round = 0; ; round++) {
    await Promise.race([program.ended, sleep(2_000)]);
    const stored = await readBack();
    const count = [...stored.values()].reduce((sum, { size }) => sum + size, 0);
    if (count >= expected || round === 30) return stored;
  }
}

/** Publishes every signal, and reads all values by Input ID and time. */
async function readBack(): Promise<Map<string, Map<number, number>>> {
  const found = await resultOf(service, "admin.selectSignals", { integration, query: { limit: tags } });
  const inputs = new Map<string, string>(
    found["data"].map(({ id, attributes }: { id: string; attributes: { input: string } }) => [id, attributes.input]),
  );
  const view = (name: string) => ({ name, valueType: "numeric", sourceType: "measurement" });
  const itemsBySignal = Object.fromEntries(Array.from(inputs, ([id, input]) => [id, view(input)]));
  const published = await resultOf(service, "admin.publishSignals", { integration, itemsBySignal });
  const times = { $gte: new Date(start).toISOString(), $lt: new Date(start + seconds * 1_000).toISOString() };
  const frame = await resultOf(service, "platform.dataFrame", {
    query: { limit: tags },
    data: { filter: { times } },
  });
  const at: number[] = frame["data"].times.map((time: string) => Date.parse(time));
  return new Map(
    Array.from(inputs, ([id, input]) => {
      const column: (number | null)[] = frame["data"].series[published["itemsBySignal"][id].id] ?? [];
      const values = column.flatMap((value, i) => (value === null ? [] : [[at[i]!, value] as const]));
      return [input, new Map(values)];
    }),
  );
}

function parsedFault(text: string): Fault {
  const fault = parseFault(text);
  if (typeof fault === "string") throw new Error(fault);
  return fault;
}
