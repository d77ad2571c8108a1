// Finds the addresses of a unit that answer, by halving refused blocks. Slow and gentle. Pure except for `read`.
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { UnitRequest } from "../config/pdu.ts";
import { decodeBit } from "../config/registers.ts";
import { isRegisterTable, type Table } from "../config/value-type.ts";
import { consequenceOf } from "../connection/exceptions.ts";
import type { Result } from "../connection/framing.ts";
import { type ConnectionConfig, openConnection } from "../polling/open.ts";
import type { ReadWords } from "./sunspec.ts";

export interface AnsweringRange {
  readonly table: Table;
  readonly start: number;
  /** Words, or bits as 0 and 1. */
  readonly values: readonly number[];
}

export interface AddressScanOptions {
  readonly table: Table;
  /** `to` is exclusive. */
  readonly from: number;
  readonly to: number;
  /** Longest request. */
  readonly block: number;
  /** Longest block that is not divided further. A lone register in it may be missed. */
  readonly smallest: number;
}

/** A block to be read. `half`: which half of a refused block. */
interface Piece {
  readonly start: number;
  readonly count: number;
  readonly half?: "first" | "second";
}

/** Yields the ranges that answer, by ascending address, each as soon as it ends; adjacent ones are merged. */
export async function* scanAddresses(
  read: ReadWords,
  { table, from, to, block, smallest }: AddressScanOptions,
): AsyncGenerator<AnsweringRange> {
  let open: { start: number; values: number[] } | undefined;
  let most = block;
  let firstHalfEnd: number | undefined;
  const pieces: Piece[] = [];
  for (let start = from; start < to; start += block) pieces.push({ start, count: Math.min(block, to - start) });
  for (let piece = pieces.shift(); piece; piece = pieces.shift()) {
    const { start, count, half } = piece;
    if (count > most) {
      pieces.unshift({ start, count: most }, { start: start + most, count: count - most });
      continue;
    }
    const values = await read(table, start, count);
    if (values) {
      // The halves answer, but the whole does not: the device does not allow this length.
      if (half === "second" && firstHalfEnd === start) most = Math.max(count, smallest);
      firstHalfEnd = half === "first" ? start + count : undefined;
      if (open && open.start + open.values.length === start) open.values.push(...values);
      else {
        if (open) yield { table, ...open };
        open = { start, values: [...values] };
      }
    } else if (count > smallest) {
      const middle = Math.ceil(count / 2);
      pieces.unshift(
        { start, count: middle, half: "first" },
        { start: start + middle, count: count - middle, half: "second" },
      );
    } else if (open) {
      // What follows is refused, and a person may wait for what was found.
      yield { table, ...open };
      open = undefined;
    }
  }
  if (open) yield { table, ...open };
}

// Reads the tables of a unit during discovery; an address without an answer counts as missing.

/** Consecutive silences before a table is abandoned. Some devices ignore missing addresses for a second each. */
const mostSilences = 10;
/** Consecutive refusals of a table without any data. Some devices answer a missing address with exception 1, too. */
const mostUnsupported = 40;

/** Reads words, or bits as 0 and 1. Adds a table to `abandoned`, with the address, if the unit lacks or ignores it. */
export function tableReader(
  link: Pick<ProbeConnection, "read">,
  unit: number,
  timeoutMs: number,
  abandoned: Map<Table, number> = new Map(),
): ReadWords {
  const silences = new Map<Table, number>();
  const unsupported = new Map<Table, number>();
  return async (table, start, count) => {
    if (abandoned.has(table) || start + count > 65_536) return undefined;
    const result = await link.read({ unit, table, start, count }, timeoutMs);
    const silent = result.kind === "silence" ? (silences.get(table) ?? 0) + 1 : 0;
    silences.set(table, silent);
    if (result.kind === "data") unsupported.set(table, Number.NEGATIVE_INFINITY);
    else if (result.kind === "exception" && consequenceOf(result.code) === "unsupported")
      unsupported.set(table, (unsupported.get(table) ?? 0) + 1);
    if (silent >= mostSilences || (unsupported.get(table) ?? 0) >= mostUnsupported) abandoned.set(table, start);
    if (result.kind !== "data") return undefined;
    const { bytes } = result;
    return isRegisterTable(table)
      ? Array.from({ length: count }, (_, i) => (bytes[i * 2]! << 8) | bytes[i * 2 + 1]!)
      : Array.from({ length: count }, (_, i) => Number(decodeBit(bytes, i)));
  };
}

/** A connection for discovery. A device may ignore unknown requests or close the connection. */
export interface ProbeConnection extends AsyncDisposable {
  /** Like `ModbusConnection.read`, but reopens a lost connection after the first answer and treats it as silence. */
  read(request: UnitRequest, timeoutMs: number): Promise<Result>;
}

/** `signal` also applies to all requests. Rejects like `openConnection`. */
export async function openProbeConnection(
  config: ConnectionConfig,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<ProbeConnection> {
  let link = await openConnection(config, runtime, signal);
  let answered = false;
  return {
    async read(request, timeoutMs) {
      try {
        const result = await link.read(request, timeoutMs, signal);
        answered ||= result.kind === "data" || result.kind === "exception";
        return result;
      } catch (error) {
        if (!answered || !(error instanceof AgentError)) throw error;
        await link[Symbol.asyncDispose]();
        link = await openConnection(config, runtime, signal);
        return { kind: "silence", mismatch: error.message, received: true };
      }
    },
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
