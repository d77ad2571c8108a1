// The configured tags as what to read of which unit. Pure.
import type { DriverConfig, DriverTag } from "../../../core/driver.ts";
import type { Captures, ConfigFault, TagId } from "../../../core/source.ts";
import { type Address, formatAddress, registersFor } from "./address.ts";
import type { ModbusOptions, modbusOptions, modbusTag } from "./options.ts";
import { protocolLimit } from "./pdu.ts";
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
  const formatOf = formatMaker();
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
      wanted: [...together.values()].map((tags) => joined(tags.map(([index, tag]) => wantedOf(index, tag, formatOf)))),
    };
  });
}

/** Modbus addresses capture nothing: one object for all. */
const noCaptures: Captures = {};

function wantedOf(index: number, tag: DriverTag<typeof modbusTag>, formatOf: FormatOf): Wanted {
  const { at, order, scaleFactor } = tag;
  const registers = isRegisterTable(at.table);
  const { table, start, count } = spanOf(at);
  // Written out, since a copy by spreading keeps its members apart from the object.
  const value: Wanted = {
    table,
    start,
    count,
    values: [
      {
        tag: index as TagId, // the brand's own definition: the index in the configuration
        start: at.address,
        address: formatAddress(at),
        captures: noCaptures,
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

type FormatOf = (tag: DriverTag<typeof modbusTag>) => RegisterFormat;

/** Gives the same object for the same format. */
function formatMaker(): FormatOf {
  const formats = new Map<string, RegisterFormat>();
  return ({ at, order, nullValues }) => {
    const { type, bit, toBit } = at;
    const format = { type, order: at.order ?? order ?? "abcd", bit, toBit, nullValues };
    const key = JSON.stringify(format);
    const known = formats.get(key) ?? format;
    formats.set(key, known);
    return known;
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
  const { maxBits, maxGap } = options;
  return { maxRegisters: maxRegisters ?? options.maxRegisters, maxBits, maxGap, forbid };
}

// What is wrong with Modbus tags only when they are seen beside each other, or beside the options of their source. Pure.

type Tag = DriverTag<typeof modbusTag>;
type Config = Pick<ModbusConfig, "options" | "tags">;

/** By tag, in their order. With none of these every tag can be read, and tags that belong together in one request. */
export function configFaults({ options, tags }: Config): readonly ConfigFault[] {
  const faults: ConfigFault[] = [];
  const bus = options.url.frames !== "mbap";
  const groups = new Map<string, { readonly first: Tag; start: number; end: number }>();
  for (const [index, tag] of tags.entries()) {
    const add = (field: string, message: string, hint: string) =>
      faults.push({ tag: index as TagId, field, message, hint }); // the brand's own definition: the index
    const { unit, at, scaleFactor, atomic } = tag;
    if (bus && (unit === 0 || unit > 247))
      add(
        "unit",
        `must be from 1 to 247 on a bus, is ${unit}`,
        unit === 0 ? "0 addresses every unit at once, and none answers" : "248 to 255 are reserved there",
      );
    const most = limitOf(options, tag);
    const own = reachOf(tag);
    const lengthField = tag.maxRegisters === undefined ? "at" : "maxRegisters";
    if (spanOf(at).count > most)
      add(lengthField, `${formatAddress(at)} takes more than the ${most} registers of a request`, raise);
    else if (scaleFactor && scaleFactor.table !== at.table)
      add("scaleFactor", `must lie in ${at.table}: as the value does, since one request reads both`, sameTable);
    else if (own.end - own.start > most)
      add(
        "scaleFactor",
        `lies too far from ${formatAddress(at)} for one request, which reads ${most} at most`,
        scaleFactor && isRegisterTable(at.table) ? "a factor that never changes can stand as scale:" : raise,
      );
    else if (atomic !== undefined) {
      const key = JSON.stringify([unit, atomic]);
      const group = groups.get(key) ?? { first: tag, ...own };
      groups.set(key, group);
      const other = differenceOf(group.first, tag);
      const start = Math.min(group.start, own.start);
      const end = Math.max(group.end, own.end);
      if (other !== undefined)
        add(
          "atomic",
          `${atomic} has tags with another ${other}, which one request cannot read`,
          `give all of them the same ${other}`,
        );
      else if (end - start > most)
        add(
          "atomic",
          `${atomic} reaches over ${end - start}, a request reads ${most} at most`,
          "leave out the tags that lie farthest",
        );
      else Object.assign(group, { start, end });
    }
  }
  return faults;
}

const raise = "raise maxRegisters where the device allows it";
const sameTable = "hr: and ir: are read by different functions";

function limitOf(options: Config["options"], { at, maxRegisters }: Tag): number {
  const wanted = isRegisterTable(at.table) ? (maxRegisters ?? options.maxRegisters) : options.maxBits;
  return Math.min(wanted, protocolLimit[at.table]);
}

/** From the first register or bit of a tag to behind the last, its scale factor included. */
function reachOf({ at, scaleFactor }: Tag): { readonly start: number; readonly end: number } {
  const spans = [at, scaleFactor].filter((place): place is Address => place !== undefined).map(spanOf);
  return {
    start: Math.min(...spans.map(({ start }) => start)),
    end: Math.max(...spans.map(({ start, count }) => start + count)),
  };
}

/** What keeps two tags of one unit out of one request, in the words of the configuration. */
function differenceOf(a: Tag, b: Tag): string | undefined {
  if (a.at.table !== b.at.table) return "table";
  return (["every", "timeout", "maxRegisters", "forbid"] as const).find(
    (field) => JSON.stringify(a[field]) !== JSON.stringify(b[field]),
  );
}
