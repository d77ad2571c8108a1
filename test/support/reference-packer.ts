// A packer that is slow and knows nothing of ours: fills a frame greedily in a random order, again and again, and keeps the
// best. Its size model is written down anew, from the shape of a request.
import type { Series } from "../../src/core/block.ts";

interface Column {
  /** Numbers of its times among all times. */
  readonly rows: Int32Array;
  /** Bytes of its first n cells, commas included. */
  readonly text: Float64Array;
  readonly name: number;
}

/** `{"jsonrpc":"2.0","method":"integration.insert","id":1000000000,"params":{…` up to the first time, and the end. */
const around = (integration: string) =>
  JSON.stringify({
    jsonrpc: "2.0",
    method: "integration.insert",
    id: 1_000_000_000,
    params: { integration, data: { times: [], series: {} } },
  }).length;

/** Bytes of a time in quotes and its comma. */
function timeBytes(micros: number): number {
  const iso = new Date(micros / 1_000).toISOString().slice(0, -1);
  const rest = String(Math.round(micros % 1_000)).padStart(3, "0");
  return `"${(iso + rest).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") || iso.includes(".") ? "" : zeros))}Z",`
    .length;
}

/** Points of the best frame of `maxBytes` among `restarts`. */
export function bestFrame(
  series: readonly Series[],
  options: {
    readonly maxBytes: number;
    readonly restarts: number;
    readonly integration: string;
    readonly random: () => number;
  },
): number {
  const numbers = new Map<number, number>();
  const lengths: number[] = [];
  const columns = series.map(({ input, times, values }): Column => {
    const text = new Float64Array(times.length + 1);
    const rows = Int32Array.from(times, (time, i) => {
      text[i + 1] = text[i]! + JSON.stringify(values[i]).length + 1;
      const number = numbers.get(time) ?? numbers.size;
      if (number === numbers.size) {
        numbers.set(time, number);
        lengths.push(timeBytes(time));
      }
      return number;
    });
    // `"name":[` and `],`, less the comma that its last cell has not.
    return { rows, text, name: JSON.stringify(input).length + 3 };
  });
  let best = 0;
  for (let i = 0; i < options.restarts; i++) best = Math.max(best, fill(columns, lengths, options));
  return best;
}

function fill(
  columns: readonly Column[],
  lengths: readonly number[],
  { maxBytes, integration, random }: Parameters<typeof bestFrame>[1],
): number {
  const present = new Uint8Array(lengths.length);
  let height = 0;
  let width = 0;
  let points = 0;
  // The last time and the last series have no comma.
  let bytes = around(integration) - 2;
  /** What the first `count` points of a column would make of the frame. */
  const withColumn = ({ rows, text, name }: Column, count: number) => {
    let fresh = 0;
    let stamps = 0;
    for (let i = 0; i < count; i++) {
      if (present[rows[i]!] === 1) continue;
      fresh++;
      stamps += lengths[rows[i]!]!;
    }
    const nulls = fresh * width + (height + fresh - count);
    return { fresh, bytes: bytes + stamps + name + text[count]! + nulls * 5 };
  };
  let misfits = 0;
  for (const column of randomOrder(columns, random)) {
    let taken = 0;
    for (let count = column.rows.length; count >= 1 && taken === 0; count = Math.floor(count * 0.7)) {
      const next = withColumn(column, count);
      if (next.bytes > maxBytes) continue;
      taken = count;
      bytes = next.bytes;
      height += next.fresh;
      for (let i = 0; i < count; i++) present[column.rows[i]!] = 1;
    }
    if (taken > 0) {
      width++;
      points += taken;
    }
    if (taken < column.rows.length && ++misfits > 20) break;
  }
  return points;
}

/** By depth, by how many begin at the same time, by chance: as much of each as chance says. */
function randomOrder(columns: readonly Column[], random: () => number): Column[] {
  const [byDepth, byCompany, byChance] = [random(), random() * 2, random() ** 2 * 2];
  const company = new Map<number, { size: number; readonly draw: number }>();
  for (const { rows } of columns) {
    const group = company.get(rows[0] ?? -1) ?? { size: 0, draw: random() };
    group.size++;
    company.set(rows[0] ?? -1, group);
  }
  const keys = new Map<Column, number>();
  for (const column of columns) {
    const { size, draw } = company.get(column.rows[0] ?? -1) ?? { size: 1, draw: 0 };
    keys.set(column, byChance * draw - byDepth * Math.log(column.rows.length) - byCompany * Math.log(size));
  }
  return columns.toSorted((a, b) => keys.get(a)! - keys.get(b)!);
}
