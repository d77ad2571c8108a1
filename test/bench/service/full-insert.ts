// The request of the benches: 7 MiB over 5,000 signals.
import { integration } from "../../support/service.ts";

export const signals = 5_000;
const start = Date.UTC(2026, 0, 1);

/** By rows. */
const seriesTexts = new Map<number, string>();

/** The `n`th span of `rows` seconds of every signal. The values repeat, so that only the times are built each time. */
export function fullInsert(n: number, rows: number): Buffer {
  const times = Array.from({ length: rows }, (_, i) => new Date(start + (n * rows + i) * 1_000).toISOString());
  const series = seriesTexts.get(rows) ?? seriesText(rows);
  seriesTexts.set(rows, series);
  const data = `{"times":${JSON.stringify(times)},"series":${series}}`;
  const params = `{"integration":${JSON.stringify(integration)},"data":${data}}`;
  return Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"integration.insert","params":${params}}`);
}

function seriesText(rows: number): string {
  const values = (s: number) => Array.from({ length: rows }, (_, i) => ((i * 37 + s * 101) % 999) / 10);
  return JSON.stringify(
    Object.fromEntries(Array.from({ length: signals }, (_, s) => [`line1.machine2.t${s}`, values(s)])),
  );
}
