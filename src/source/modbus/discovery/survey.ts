// Which addresses of a unit answer: found by asking for blocks and halving those that are refused. Slow and gentle. Pure but for `read`.
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
  /** What they held: words, or bits as 0 and 1. */
  readonly values: readonly number[];
}

export interface SurveyOptions {
  readonly table: Table;
  /** Addresses from `from` to below `to`. */
  readonly from: number;
  readonly to: number;
  /** Most that are asked for at once. */
  readonly block: number;
  /** Refused blocks are not divided further than this: a lone register in between may be missed. */
  readonly smallest: number;
}

/** What is still to be asked for. `half`: which half of a piece that was refused. */
interface Piece {
  readonly start: number;
  readonly count: number;
  readonly half?: "first" | "second";
}

/** Yields the ranges that answer, by ascending address; neighbouring ones as one. */
export async function* survey(
  read: ReadWords,
  { table, from, to, block, smallest }: SurveyOptions,
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
      // Both halves are there and the whole was not given: it is the length that the device does not allow.
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
    }
  }
  if (open) yield { table, ...open };
}

// The tables of a unit as words, for looking around: what does not answer is simply not there.

/** In a row, of one table: some devices do not refuse what they do not have, and each silence takes a second. */
const mostSilences = 10;
/** In a row, of one table of which nothing was read: some devices answer exception 1 over a hole, too. */
const mostUnsupported = 40;

/**
 * Words, or bits as 0 and 1, of `unit`. A table that it does not have, or about which it says nothing, is abandoned: then it
 * is in `abandoned`, with the address where that was.
 */
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

/** A link to look around with: a device that once answered may be silent or end the connection over what it does not know. */
export interface ProbeConnection extends AsyncDisposable {
  /**
   * As `ModbusConnection.read`. Once anything was answered, a connection that ends is opened again and counts as silence.
   * Rejects with `SOURCE_*` when that fails, too.
   */
  read(request: UnitRequest, timeoutMs: number): Promise<Result>;
}

/** Connects. Rejects as `openConnection` does; `signal` is that of all requests too. */
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
        return { kind: "silence", mismatch: error.message, heard: true };
      }
    },
    [Symbol.asyncDispose]: () => link[Symbol.asyncDispose](),
  };
}
