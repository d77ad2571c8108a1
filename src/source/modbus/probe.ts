// One place in a device read in every type and order, at its neighbours too, ranked by a value read off the device's
// display: wrong base, wrong type and wrong order are the three usual faults of commissioning.
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Address } from "./address.ts";
import { formatAddress, parseAddress } from "./address.ts";
import { describeException } from "./exceptions.ts";
import { openLink } from "./open.ts";
import { optionsOf } from "./options.ts";
import { decodeRegisters, scaled } from "./registers.ts";
import { isRegisterTable, orders, registersOf } from "./value-type.ts";

export interface ProbeTarget {
  /** As `url` of a source. */
  readonly url: string;
  readonly unit: number;
  /** `hr:40`, `40041`: type and order are what is looked for, and of no effect. */
  readonly at: string;
  /** What the device's display shows, as it is written there: `231.4`. */
  readonly expect?: string;
}

/** One way to read the place. */
export interface ProbeRow {
  readonly at: string;
  readonly value: number | bigint;
  /** Power of ten that makes it what the display shows; 0 without `expect`. */
  readonly exponent: number;
  /** Whether it is what the display shows, as exactly as that shows it. */
  readonly matches: boolean;
}

const types = [
  "u16",
  "i16",
  "u32",
  "i32",
  "f32",
  "u64",
  "i64",
  "f64",
  "f16",
  "bcd16",
  "bcd32",
  "sm16",
  "sm32",
  "m10k2",
  "m10k3",
] as const;
const exponents = [0, -1, -2, -3, 1, 2, 3];
const widest = 4;

/** Reads the registers around `at` and gives every way to read them, likely ones first. Rejects with `CONFIG_INVALID`, `SOURCE_*` or `signal.reason`. */
export async function probeModbus(
  { url, unit, at, expect }: ProbeTarget,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<readonly ProbeRow[]> {
  const parsed = parseAddress(at);
  if (!parsed.ok) throw new AgentError("CONFIG_INVALID", parsed.error);
  const { table, address } = parsed.address;
  if (!isRegisterTable(table)) throw new AgentError("CONFIG_INVALID", `${at}: a bit can be read in one way only`);
  const options = optionsOf({ url });
  await using link = await openLink({ name: "probe", options, units: new Set([unit]) }, runtime, signal);
  const start = Math.max(0, address - 1);
  let refusal = "";
  // What lies behind the place may not exist: then without it.
  for (let end = Math.min(65_536, address + 1 + widest); end > address; end--) {
    const result = await link.read({ unit, table, start, count: end - start }, options.timeout, signal);
    if (result.kind === "data") return interpretations(result.bytes, { table, start, address }, expect);
    refusal = result.kind === "exception" ? describeException(result.code) : `unit ${unit} did not answer`;
    if (result.kind === "silence") break;
  }
  throw new AgentError("SOURCE_PROTOCOL", `${at}: ${refusal}`);
}

/** Every way to read `bytes`, which begin at register `start`, at `address` and its two neighbours. Pure. */
export function interpretations(
  bytes: Uint8Array,
  { table, start, address }: Pick<Address, "table" | "address"> & { readonly start: number },
  expect: string | undefined,
): readonly ProbeRow[] {
  const rows: (ProbeRow & { readonly rank: number })[] = [];
  for (const [offset, at] of [address, address - 1, address + 1].entries())
    for (const [simple, type] of types.entries())
      for (const [turn, order] of orders.entries()) {
        const width = registersOf[type];
        // Of one register only the order of its bytes matters.
        if (
          at < start ||
          (at - start + width) * 2 > bytes.length ||
          (width === 1 && (order === "cdab" || order === "dcba"))
        )
          continue;
        const decoded = decodeRegisters(bytes, at - start, { type, order });
        if (!decoded.ok || typeof decoded.value === "boolean") continue;
        const exponent =
          expect === undefined
            ? undefined
            : exponents.find((power) => shows(decoded.ok ? decoded.value : 0, power, expect));
        const text = formatAddress({ table, address: at, type, ...(order === "abcd" ? {} : { order }) });
        rows.push({
          at: text,
          value: decoded.value,
          exponent: exponent ?? 0,
          matches: exponent !== undefined,
          rank: (exponent === undefined ? 1_000_000 : Math.abs(exponent) * 100) + offset * 10_000 + simple * 10 + turn,
        });
      }
  return rows
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ at, value, exponent, matches }) => ({ at, value, exponent, matches }));
}

/** Whether `value` times ten to `exponent` is shown as `expect`, with as many decimals as that has. */
function shows(value: number | bigint | boolean, exponent: number, expect: string): boolean {
  if (typeof value === "boolean") return false;
  const decimals = /\.(\d+)$/.exec(expect.trim())?.[1]?.length ?? 0;
  const shown = Number(scaled(value, exponent));
  return Math.abs(shown - Number(expect)) <= 0.5 * 10 ** -decimals * (1 + 1e-9);
}
