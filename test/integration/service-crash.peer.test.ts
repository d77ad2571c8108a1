import { expect, test } from "vitest";
import { seeded } from "../support/runtime.ts";
import { integration } from "../support/service.ts";
import { serviceClient } from "../support/service-client.ts";
import { serviceProcess } from "../support/service-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const signals = 1_000;
const rows = 200;
const start = Date.UTC(2026, 0, 1);
const at = (row: number) => new Date(start + row * 1_000).toISOString();
const data = { include: true, notBefore: at(0), before: at(rows), rollup: "window" };

/** A request of a megabyte in which every value of every signal is `value`. */
function requestOf(value: number): Buffer {
  const times = Array.from({ length: rows }, (_, row) => at(row));
  const column = times.map(() => value);
  const series = Object.fromEntries(Array.from({ length: signals }, (_, s) => [`s${s}`, column]));
  const params = { integration, data: { times, series } };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "integration.insert", params }));
}

test("after kill -9 during a large insert all of it is stored or none, and everything that was answered", {
  timeout: 120_000,
}, async () => {
  using folder = temporaryFolder();
  const seed = Number(process.env["TAGFERRY_SEED"] ?? 5);
  const random = seeded(seed);
  let answered = 0;
  let sent = 0;
  for (let round = 0; round < 3; round++) {
    await using service = await serviceProcess(folder.path);
    using client = serviceClient(service.url);
    const began = performance.now();
    await client.post(requestOf(++sent));
    answered = sent;
    const took = performance.now() - began;
    if (round === 0) {
      const { signals: views } = await client.call("admin.selectSignals", {
        integration,
        signals: { include: true, limit: signals },
      });
      const view = { name: "s", type: "numeric", sourceType: "measurement" };
      const itemsBySignal = Object.fromEntries(Object.keys(views ?? {}).map((id) => [id, view]));
      await client.call("admin.publishSignals", { integration, itemsBySignal });
    }
    const next = client.post(requestOf(++sent)).then(
      () => (answered = sent),
      () => {}, // the service was killed before it answered
    );
    // The kill happens at a random moment within the time that the previous insert took.
    await new Promise((resolve) => setTimeout(resolve, took * random()));
    await service.kill();
    await next;
    await using again = await serviceProcess(folder.path);
    using reader = serviceClient(again.url);
    const seen = new Set<number | null>();
    for (let skip = 0; skip < signals; skip += 190) {
      const { data: frame } = await reader.call("platform.selectItems", { items: { limit: 50, skip }, data });
      const { series } = frame as { series: Record<string, (number | null)[]> };
      for (const [key, [value = null]] of Object.entries(series)) if (/_(min|max)$/.test(key)) seen.add(value);
    }
    expect(seen.size, `seed ${seed}, round ${round}`).toBe(1);
    expect([...seen][0], `seed ${seed}, round ${round}`).toBeGreaterThanOrEqual(answered);
  }
});
