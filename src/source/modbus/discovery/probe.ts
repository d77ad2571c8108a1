// Decodes an address and its neighbours in every type and order, and in the other table. Ranks the results by the value
// on the device's display: wrong base, type and order are the usual commissioning faults.

import type { ProbeRow, ProbeTarget } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { scaled } from "../../../lib/values/decimal-text.ts";
import { type Address, formatAddress, parseAddress } from "../config/address.ts";
import { silenceHint } from "../config/endpoint.ts";
import { optionsOf } from "../config/options.ts";
import { describeException, type ReadRequest } from "../config/pdu.ts";
import { decodeRegisters, isRegisterTable, orders, type RegisterTable, registersOf } from "../config/registers.ts";
import { describeContested, type Result } from "../connection/result.ts";
import { openConnection } from "../polling/open.ts";
import { cameInstead } from "../polling/unit-reader.ts";

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

/** A way to read the address. A higher rank is less likely. */
interface Ranked extends ProbeRow {
  readonly rank: number;
}

// Penalties: the address itself precedes its neighbours, and those precede the other table.
const noMatch = 1_000_000;
const otherTable = 100_000;
const neighbour = 10_000;
const nearMatch = 5_000;

/** Relative change that the value may have had since it was read from the display. */
const tolerance = 0.02;
/** The most common formats. Among all formats, some value is always near by chance. */
const usualTypes: ReadonlySet<string> = new Set(["u16", "i16", "u32", "i32", "f32"]);
const usualOrders: ReadonlySet<string> = new Set(["abcd", "cdab"]);

/**
 * Reads the registers around `at` in both register tables and returns all interpretations, most likely first. Rejects
 * with `CONFIG_INVALID`, `SOURCE_*` or `signal.reason`.
 */
export async function probeModbus(
  { url, unit, at, expect, replyUnit }: ProbeTarget,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<readonly ProbeRow[]> {
  const parsed = parseAddress(at);
  if (typeof parsed === "string") throw new AgentError("CONFIG_INVALID", `--at ${at}: ${parsed}`);
  const { table, address } = parsed;
  if (!isRegisterTable(table)) throw new AgentError("CONFIG_INVALID", `${at}: a bit can be read in one way only`);
  const options = optionsOf({ url, ...(replyUnit !== undefined && { replyUnit }) });
  await using link = await openConnection({ name: "probe", options, units: new Set([unit]) }, runtime, signal);
  const read = (request: ReadRequest) => link.read(request, options.timeout, signal);

  const own = await around(read, unit, table, address);
  if ("silence" in own)
    throw new AgentError("SOURCE_UNREACHABLE", `${at}: ${own.silence}`, { hint: silenceHint(options.url) });
  if ("refusal" in own)
    throw new AgentError("SOURCE_PROTOCOL", `${at}: ${own.refusal}`, {
      hint: "tagferry browse shows which addresses answer",
    });
  const twin = table === "hr" ? "ir" : "hr";
  const other = await around(read, unit, twin, address);
  const rows = waysToRead(own, { table, address }, expect);
  const others = !("bytes" in other) ? [] : waysToRead(other, { table: twin, address }, expect);
  return [...rows, ...others.map((row) => ({ ...row, rank: row.rank + otherTable }))]
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ rank: _rank, ...row }) => row);
}

interface Surroundings {
  readonly start: number;
  readonly bytes: Uint8Array;
}

/** Reads as many registers around `address` as exist, or gives the reason for a failure. */
async function around(
  read: (request: ReadRequest) => Promise<Result>,
  unit: number,
  table: RegisterTable,
  address: number,
): Promise<Surroundings | { readonly refusal: string } | { readonly silence: string }> {
  let refusal = "";
  // Registers before or after the address may not exist; retry without them.
  for (const start of [address - 1, address, address + 1].filter((place) => place >= 0))
    for (let end = Math.min(65_536, address + 1 + widest); end > start; end--) {
      const result = await read({ unit, table, start, count: end - start });
      if (result.kind === "data") return { start, bytes: result.bytes };
      if (result.kind === "silence") return { silence: `unit ${unit} did not answer${cameInstead(result)}` };
      refusal = result.kind === "contested" ? describeContested(result) : describeException(result.code);
    }
  return { refusal };
}

/** Every interpretation of `bytes` at `address` and its two neighbours. */
function waysToRead(
  { start, bytes }: Surroundings,
  { table, address }: Pick<Address, "table" | "address">,
  expect: string | undefined,
): readonly Ranked[] {
  const rows: Ranked[] = [];
  for (const [offset, at] of [address, address - 1, address + 1].entries())
    for (const [simple, type] of types.entries())
      for (const [turn, order] of orders.entries()) {
        const width = registersOf[type];
        if (at < start || (at - start + width) * 2 > bytes.length) continue;
        // For one register only the byte order matters.
        if (width === 1 && (order === "cdab" || order === "dcba")) continue;
        const decoded = decodeRegisters(bytes, at - start, { type, order });
        if (!decoded.ok || typeof decoded.value === "boolean") continue;
        const { value } = decoded;
        const exact = expect === undefined ? undefined : exponents.find((power) => shows(value, power, expect));
        const isUsual = usualTypes.has(type) && usualOrders.has(order);
        const near =
          expect === undefined || exact !== undefined || !isUsual
            ? undefined
            : exponents.find((power) => comesNear(value, power, expect));
        const exponent = exact ?? near;
        const unlikely =
          exponent === undefined ? noMatch : Math.abs(exponent) * 100 + (near === undefined ? 0 : nearMatch);
        rows.push({
          at: formatAddress({ table, address: at, type, order: order === "abcd" ? undefined : order }),
          value,
          exponent: exponent ?? 0,
          matches: exact !== undefined,
          near: near !== undefined,
          rank: unlikely + offset * neighbour + simple * 10 + turn,
        });
      }
  return rows;
}

/** Whether `value` times ten to `exponent`, rounded to the decimals of `expect`, is `expect`. */
function shows(value: number | bigint, exponent: number, expect: string): boolean {
  const decimals = /\.(\d+)$/.exec(expect.trim())?.[1]?.length ?? 0;
  const shown = Number(scaled(value, exponent));
  return Math.abs(shown - Number(expect)) <= 0.5 * 10 ** -decimals * (1 + 1e-9);
}

function comesNear(value: number | bigint, exponent: number, expect: string): boolean {
  const shown = Number(scaled(value, exponent));
  return Math.abs(shown - Number(expect)) <= Math.abs(Number(expect)) * tolerance;
}
