// The configured tags as what to read of which unit, and what was read as readings. Pure.
import type { EpochMicros } from "../../core/point.ts";
import type { Captures, DriverConfig, DriverTag, Reading, TagId } from "../../core/source.ts";
import { formatAddress } from "./address.ts";
import type { ModbusOptions, modbusOptions, modbusTag } from "./options.ts";
import type { Block, Limits, Span } from "./plan.ts";
import type { Decoded, RegisterFormat } from "./registers.ts";
import { decodeBit, decodeRegisters } from "./registers.ts";
import { isRegisterTable, registersOf } from "./value-type.ts";

export type ModbusConfig = DriverConfig<typeof modbusOptions, typeof modbusTag>;

/** One tag, ready to be read. */
export interface Wanted extends Span {
  readonly tag: TagId;
  readonly address: string;
  readonly captures: Captures;
  /** Undefined in the tables of bits. */
  readonly format: RegisterFormat | undefined;
}

/** The tags of one unit that are read together: same interval, same limits. */
export interface PollTarget {
  readonly unit: number;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly limits: Limits;
  readonly wanted: readonly Wanted[];
}

/** Every tag of `config` in exactly one target. */
export function pollTargets(config: Pick<ModbusConfig, "options" | "tags">): readonly PollTarget[] {
  const { options } = config;
  const groups = Map.groupBy(config.tags.entries(), ([, tag]) =>
    JSON.stringify([tag.unit, tag.every, tag.timeout, tag.maxRegisters]),
  );
  return [...groups.values()].flatMap((members) => {
    const first = members[0]?.[1];
    if (!first) return [];
    return {
      unit: first.unit,
      everyMs: first.every,
      timeoutMs: first.timeout ?? options.timeout,
      limits: limitsOf(options, first.maxRegisters),
      wanted: members.map(([index, tag]) => wantedOf(index, tag)),
    };
  });
}

/** Values of a block out of the data of its reply. */
export function decodeBlock(block: Block<Wanted>, bytes: Uint8Array, time: EpochMicros): readonly Reading[] {
  return block.items.map((item) => {
    const index = item.start - block.start;
    const decoded: Decoded = item.format
      ? decodeRegisters(bytes, index, item.format)
      : { ok: true, value: decodeBit(bytes, index) };
    return decoded.ok ? readingOf(item, decoded.value, time) : failedReading(item, decoded.reason, time);
  });
}

/** What stands for a value that could not be had. */
export function failedReading(item: Wanted, reason: string, time: EpochMicros): Reading {
  return { ...readingOf(item, undefined, time), quality: "bad", reason };
}

function readingOf({ tag, captures, address }: Wanted, value: Reading["value"], time: EpochMicros): Reading {
  return { tag, captures, address, value, time, clock: "agent", quality: "good", historical: false };
}

function wantedOf(index: number, { at, order, nullValues }: DriverTag<typeof modbusTag>): Wanted {
  const registers = isRegisterTable(at.table);
  const format: RegisterFormat = {
    type: at.type,
    order: at.order ?? order ?? "abcd",
    ...(at.bit === undefined ? {} : { bit: at.bit }),
    ...(nullValues === undefined ? {} : { nullValues }),
  };
  return {
    tag: index as TagId, // the brand's own definition: the index in the configuration
    table: at.table,
    start: at.address,
    count: registers ? registersOf[at.type] : 1,
    address: formatAddress(at),
    captures: {},
    format: registers ? format : undefined,
  };
}

function limitsOf(options: ModbusOptions, maxRegisters: number | undefined): Limits {
  return { maxRegisters: maxRegisters ?? options.maxRegisters, maxBits: options.maxBits, maxGap: options.maxGap };
}
