// The request of the benches: 7 MiB over 5,000 signals.
import { integration } from "../../support/service.ts";

export const signals = 5_000;
const start = Date.UTC(2026, 0, 1);

/** The `n`th span of `rows` seconds of every signal. */
export function fullInsert(n: number, rows: number): Buffer {
  const times = Array.from({ length: rows }, (_, i) => new Date(start + (n * rows + i) * 1_000).toISOString());
  const series = Object.fromEntries(
    Array.from({ length: signals }, (_, s) => [
      `line1.machine2.t${s}`,
      Array.from({ length: rows }, (_, i) => ((i * 37 + s * 101) % 999) / 10),
    ]),
  );
  const params = { integration, data: { times, series } };
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "integration.insert", params }));
}
