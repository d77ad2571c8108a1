// The configured tags as what to read of which unit. Pure.
import type { Captures, DriverConfig, DriverTag, TagId } from "../../../core/source.ts";
import type { Address } from "./address.ts";
import { formatAddress, registersFor } from "./address.ts";
import type { ModbusOptions, modbusOptions, modbusTag } from "./options.ts";
import type { Limits, Span } from "./plan.ts";
import type { RegisterFormat } from "./registers.ts";
import { isRegisterTable } from "./value-type.ts";

export type ModbusConfig = DriverConfig<typeof modbusOptions, typeof modbusTag>;

/** What one tag gets out of the registers or bits from `start` on. */
export interface WantedValue {
  readonly tag: TagId;
  readonly address: string;
  readonly captures: Captures;
  readonly start: number;
  /** Undefined in the tables of bits. */
  readonly format: RegisterFormat | undefined;
  /** Where the power of ten lies that it is multiplied by. */
  readonly scale: { readonly start: number; readonly format: RegisterFormat } | undefined;
}

/** What is read in one request: the value of a tag with its scale factor, or those of tags that belong together. */
export interface Wanted extends Span {
  readonly values: readonly WantedValue[];
}

/** The tags of one unit that are read together: same interval, same limits. */
export interface PollTarget {
  readonly unit: number;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly limits: Limits;
  readonly wanted: readonly Wanted[];
}

/** Every tag of `config` in exactly one target. The configuration has no faults (`config-faults.ts`). */
export function pollTargets(config: Pick<ModbusConfig, "options" | "tags">): readonly PollTarget[] {
  const { options } = config;
  const groups = Map.groupBy(config.tags.entries(), ([, tag]) =>
    JSON.stringify([tag.unit, tag.every, tag.timeout, tag.maxRegisters, tag.forbid]),
  );
  return [...groups.values()].flatMap((members) => {
    const first = members[0]?.[1];
    if (!first) return [];
    // A tag that belongs to no others is a group of its own.
    const together = Map.groupBy(members, ([index, { atomic }]) => (atomic === undefined ? index : atomic));
    return {
      unit: first.unit,
      everyMs: first.every,
      timeoutMs: first.timeout ?? options.timeout,
      limits: limitsOf(options, first),
      wanted: [...together.values()].map((tags) => joined(tags.map(([index, tag]) => wantedOf(index, tag)))),
    };
  });
}

function wantedOf(index: number, tag: DriverTag<typeof modbusTag>): Wanted {
  const { at, order, scaleFactor } = tag;
  const registers = isRegisterTable(at.table);
  const value: Wanted = {
    ...spanOf(at),
    values: [
      {
        tag: index as TagId, // the brand's own definition: the index in the configuration
        start: at.address,
        address: formatAddress(at),
        captures: {},
        format: registers ? formatOf(tag) : undefined,
        scale: scaleFactor && {
          start: scaleFactor.address,
          format: {
            // A register without a type is u16; a factor may be negative.
            type: scaleFactor.type === "u16" ? "i16" : scaleFactor.type,
            order: scaleFactor.order ?? order ?? "abcd",
          },
        },
      },
    ],
  };
  return scaleFactor ? joined([value, { ...spanOf(scaleFactor), values: [] }]) : value;
}

function formatOf({ at, order, nullValues }: DriverTag<typeof modbusTag>): RegisterFormat {
  return {
    type: at.type,
    order: at.order ?? order ?? "abcd",
    ...(at.bit === undefined ? {} : { bit: at.bit }),
    ...(at.toBit === undefined ? {} : { toBit: at.toBit }),
    ...(nullValues === undefined ? {} : { nullValues }),
  };
}

export function spanOf(address: Address): Span {
  const count = isRegisterTable(address.table) ? registersFor(address) : 1;
  return { table: address.table, start: address.address, count };
}

function joined(parts: readonly Wanted[]): Wanted {
  const [first, ...others] = parts;
  if (!first || others.length === 0) return first ?? { table: "hr", start: 0, count: 0, values: [] };
  const start = Math.min(...parts.map((part) => part.start));
  const end = Math.max(...parts.map((part) => part.start + part.count));
  return { table: first.table, start, count: end - start, values: parts.flatMap((part) => part.values) };
}

function limitsOf(options: ModbusOptions, { maxRegisters, forbid }: DriverTag<typeof modbusTag>): Limits {
  return {
    maxRegisters: maxRegisters ?? options.maxRegisters,
    maxBits: options.maxBits,
    maxGap: options.maxGap,
    ...(forbid ? { forbid } : {}),
  };
}
