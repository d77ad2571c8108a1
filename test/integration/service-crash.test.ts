import { expect, test } from "vitest";
import { seeded } from "../support/runtime.ts";
import { integration } from "../support/service.ts";
import { serviceClient } from "../support/service-client.ts";
import { serviceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const series = 20;
const data = { include: true, notBefore: "2026-01-01T00:00:00Z", before: "2026-01-02T00:00:00Z" };
/** One time, second `n`, and the value `n` in every series. */
const frameOf = (n: number) => ({
  times: [new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString()],
  series: Object.fromEntries(Array.from({ length: series }, (_, i) => [`s${i}`, [n]])),
});

test("after kill -9 during writes every answered request is stored, and none in part", async () => {
  using folder = temporaryFolder();
  const random = seeded(3);
  const answered: number[] = [];
  let next = 0;
  for (let round = 0; round < 3; round++) {
    await using service = await serviceProcess(folder.path);
    using client = serviceClient(service.url);
    if (round === 0) {
      await client.call("integration.saveSignals", {
        integration,
        inputs: Object.fromEntries(Array.from({ length: series }, (_, i) => [`s${i}`, {}])),
      });
      const { signals } = await client.call("admin.selectSignals", {
        integration,
        signals: { include: true, limit: 100 },
      });
      const view = { name: "s", type: "numeric", sourceType: "measurement" };
      const itemsBySignal = Object.fromEntries(Object.keys(signals ?? {}).map((id) => [id, view]));
      await client.call("admin.publishSignals", { integration, itemsBySignal });
    }
    // Three calls run in parallel. After enough answers, the kill hits the others at any stage.
    const enough = answered.length + 10 + Math.floor(random() * 20);
    let killed: Promise<void> | undefined;
    const insertUntilKilled = async () => {
      while (!killed) {
        const n = next++;
        await client.call("integration.insert", { integration, data: frameOf(n) }).then(
          () => answered.push(n),
          () => {}, // the service was killed before it answered
        );
        if (answered.length >= enough) killed ??= service.kill();
      }
    };
    await Promise.all([insertUntilKilled(), insertUntilKilled(), insertUntilKilled()]);
    await killed;
  }
  await using service = await serviceProcess(folder.path);
  using client = serviceClient(service.url);
  const { data: frame } = await client.call("platform.selectItems", { items: { limit: 50 }, data });
  const { times, series: columns } = frame as { times: string[]; series: Record<string, (number | null)[]> };
  const there = new Map(times.map((time, row) => [time, Object.values(columns).map((values) => values[row])]));
  expect(answered.length).toBeGreaterThanOrEqual(30);
  for (const n of answered)
    expect(there.has(frameOf(n).times[0]?.replace(".000Z", "Z") ?? ""), `request ${n}`).toBe(true);
  for (const [time, values] of there) expect(new Set(values).size, time).toBe(1);
  expect(Object.keys(columns).length).toBe(series);
});
