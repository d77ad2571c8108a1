import { expect, test } from "vitest";
import { type Fault, parseFault } from "../../src/service/config/fault.ts";
import { eventually } from "../support/eventually.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { integration, type TestService, testService } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const first = Date.UTC(2026, 0, 1);
const view = { name: "s", type: "numeric", sourceType: "measurement" };
const data = { include: true, notBefore: "2026-01-01T00:00:00Z", before: "2026-01-02T00:00:00Z" };

/** `rows` seconds of `signals` signals, in which each value is `value`. */
function frame(signals: number, rows: number, value: number) {
  const times = Array.from({ length: rows }, (_, i) => new Date(first + i * 1_000).toISOString());
  const series = Object.fromEntries(Array.from({ length: signals }, (_, s) => [`s${s}`, times.map(() => value)]));
  return { integration, data: { times, series } };
}

function parsedFault(text: string): Fault {
  const fault = parseFault(text);
  if (typeof fault === "string") throw new Error(fault);
  return fault;
}

async function publishAll(service: TestService): Promise<void> {
  const signals = { include: true, limit: 100 };
  const { body } = await service.call("admin.selectSignals", { integration, signals });
  const itemsBySignal = Object.fromEntries(Object.keys(body?.result?.["signals"] ?? {}).map((id) => [id, view]));
  await service.call("admin.publishSignals", { integration, itemsBySignal });
}

test.for([
  ["metadata query", "admin.selectSignals", { integration, signals: { include: true, limit: 1 } }],
  ["small insert", "integration.insert", frame(3, 1, 2)],
] as const)(
  "a %s that is sent while a large insert runs is answered before that insert",
  { timeout: 60_000 },
  async ([, method, small]) => {
    using folder = temporaryFolder();
    const clock = new ManualClock();
    await using service = await testService({ data: folder.path }, testRuntime({ clock }));
    // Many points, but a short answer, so that it is not compressed.
    const params = frame(10, 120_000, 1);
    let overtaken = false;
    for (let n = 0; n < 10 && !overtaken; n++) {
      let answered = false;
      const insert = service.call("integration.insert", params).then(() => (answered = true));
      // A sleeper on the clock is the timeout of 15 s: it starts when the writing thread receives the insert, and ends
      // with its answer.
      await eventually(() => answered || clock.sleeping > 0);
      // If the insert were answered before the first of these calls, its answer would have arrived by the last one.
      for (let call = 0; call < 3; call++) await service.call(method, small);
      overtaken = !answered;
      await insert;
    }
    expect(overtaken).toBe(true);
  },
);

test("a query finds the signals and items of every write answered before it", async () => {
  using folder = temporaryFolder();
  await using service = await testService({ data: folder.path });
  for (let n = 1; n <= 5; n++) {
    await service.call("integration.saveSignals", { integration, inputs: { [`s${n}`]: { name: `name ${n}` } } });
    const filter = { name: `name ${n}` };
    const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true, filter } });
    const [id = ""] = Object.keys(body?.result?.["signals"]);
    await service.call("admin.publishSignals", {
      integration,
      itemsBySignal: { [id]: { ...view, name: `item ${n}` } },
    });
    // In parallel, so that each thread answers some.
    const ask = () => service.call("platform.selectItems", { items: { include: true, limit: 100 } });
    for (const items of await Promise.all([ask(), ask(), ask(), ask()]))
      expect(Object.values(items.body?.result?.["items"])).toHaveLength(n);
    // Renames the signal, and checks that the filter of this round no longer finds it.
    await service.call("integration.saveSignals", { integration, inputs: { [`s${n}`]: { name: "old" } } });
    const renamed = await service.call("admin.selectSignals", { integration, signals: { include: true, filter } });
    expect(renamed.body?.result?.["signals"]).toEqual({});
  }
});

test("every thread returns signals in the order of their creation, also after the clock was set back", async () => {
  using folder = temporaryFolder();
  await using service = await testService({ data: folder.path });
  const save = (input: string) => service.call("integration.saveSignals", { integration, inputs: { [input]: {} } });
  await save("a");
  service.setFaults([parsedFault("skew=-1h")]);
  await save("b");
  service.setFaults([]);
  const ask = async () => {
    const { body } = await service.call("admin.selectSignals", { integration, signals: { include: true } });
    return Object.values<{ inputId: string }>(body?.result?.["signals"]).map(({ inputId }) => inputId);
  };
  for (const order of await Promise.all(Array.from({ length: 8 }, ask))) expect(order).toEqual(["a", "b"]);
});

test.each([
  ["small", 50, 20_000, 40],
  ["large", 50, 1_000, 1_000],
])("a query during %s inserts sees all of each or nothing", async (_, signals, stored, rows) => {
  using folder = temporaryFolder();
  await using service = await testService({ data: folder.path });
  // So many points that a query takes longer than a small insert.
  await service.call("integration.insert", frame(signals, stored, 0));
  await publishAll(service);
  let inserting = true;
  const inserts = (async () => {
    for (let n = 1; n <= 30; n++) await service.call("integration.insert", frame(signals, rows, n));
    inserting = false;
  })();
  const seen = new Set<number>();
  let torn = 0;
  const ask = async () => {
    while (inserting) {
      const { body } = await service.call("platform.selectItems", {
        items: { limit: 50 },
        data: { ...data, rollup: "window" },
      });
      const columns = Object.entries<number[]>(body?.result?.["data"].series).filter(([key]) => key.endsWith("_max"));
      const values = new Set(columns.flatMap(([, value]) => value));
      if (columns.length !== signals || values.size !== 1) torn++;
      for (const value of values) seen.add(value);
    }
  };
  await Promise.all([inserts, ask(), ask()]);
  expect(torn).toBe(0);
  expect(seen.size).toBeGreaterThan(1);
});
