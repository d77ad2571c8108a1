// A slow packer that is independent of the product's: fills a frame greedily in a random order, many times, and keeps
// the best frame. It computes sizes by itself, from the format of a request.
import type { Series } from "../../src/core/block.ts";

interface Column {
  /** The indices of its times among all times. */
  readonly rows: Int32Array;
  /** The bytes of its first n cells, including commas. */
  readonly text: Float64Array;
  readonly name: number;
}

/**
 * The bytes of `{"jsonrpc":"2.0","method":"integration.insert","id":1000000000,"params":{…` up to the first time, and
 * of the end.
 */
const around = (integration: string) =>
  JSON.stringify({
    jsonrpc: "2.0",
    method: "integration.insert",
    id: 1_000_000_000,
    params: { integration, data: { times: [], series: {} } },
  }).length;

/** The bytes of a time in quotes and its comma. */
function timeBytes(micros: number): number {
  const iso = new Date(micros / 1_000).toISOString().slice(0, -1);
  const rest = String(Math.round(micros % 1_000)).padStart(3, "0");
  return `"${(iso + rest).replace(/\.?0+$/, (zeros) => (zeros.startsWith(".") || iso.includes(".") ? "" : zeros))}Z",`
    .length;
}

/** The number of points of the best frame of `maxBytes` in `restarts` attempts. */
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
    // `"name":[` and `],`, without the comma that follows no last cell.
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
  /** The size of the frame with the first `count` points of a column. */
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

/** A random mix of three orders: by depth, by the number of columns with the same first time, and random. */
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
