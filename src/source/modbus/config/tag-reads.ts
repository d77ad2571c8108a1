// Turns the configured tags into reads per unit. Pure.
import type { DriverConfig, DriverTag } from "../../../core/driver.ts";
import type { ReadPlace } from "../../../core/reading.ts";
import type { Captures, ConfigFault, TagId } from "../../../core/source.ts";
import { type Address, formatAddress } from "./address.ts";
import type { ModbusOptions, modbusOptions, modbusTag } from "./options.ts";
import { protocolLimit } from "./pdu.ts";
import type { Limits, Span } from "./plan.ts";
import {
  isRegisterTable,
  type RegisterFormat,
  type RegisterReader,
  registerReader,
  registersFor,
} from "./registers.ts";

export type ModbusConfig = DriverConfig<typeof modbusOptions, typeof modbusTag>;

/** The value of one tag in the registers or bits from `start` on. */
export interface TagRead extends ReadPlace {
  readonly start: number;
  /** Undefined in bit tables. */
  readonly format: RegisterFormat | undefined;
  /** Reads the value as `format` says. Undefined if it depends on other registers or values, or is a bit. */
  readonly read: RegisterReader | undefined;
  /** Place of the power of ten to multiply by. */
  readonly scale: { readonly start: number; readonly format: RegisterFormat } | undefined;
}

/** Data read in one request: a tag with its scale factor, or all tags of an atomic group. */
export interface TagSpan extends Span {
  readonly values: readonly TagRead[];
}

/** Tags of one unit with the same interval and limits. */
export interface PollTarget {
  readonly unit: number;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly limits: Limits;
  readonly spans: readonly TagSpan[];
}

/** Puts every tag in exactly one target. Requires a configuration without faults (`configFaults`). */
export function pollTargets(config: Pick<ModbusConfig, "options" | "tags">): readonly PollTarget[] {
  const { options } = config;
  const formatOf = formatMaker();
  const groups = Map.groupBy(config.tags.entries(), ([, tag]) =>
    JSON.stringify([tag.unit, tag.every, tag.timeout, tag.maxRegisters, tag.forbid]),
  );
  return [...groups.values()].flatMap((members) => {
    const first = members[0]?.[1];
    if (!first) return [];
    // A tag without `atomic` forms its own group.
    const together = Map.groupBy(members, ([index, { atomic }]) => (atomic === undefined ? index : atomic));
    return {
      unit: first.unit,
      everyMs: first.every,
      timeoutMs: first.timeout ?? options.timeout,
      limits: limitsOf(options, first),
      spans: [...together.values()].map((tags) => joined(tags.map(([index, tag]) => spanWith(index, tag, formatOf)))),
    };
  });
}

/** Modbus addresses capture nothing: one object for all. */
const noCaptures: Captures = {};

function spanWith(index: number, tag: DriverTag<typeof modbusTag>, formatOf: FormatOf): TagSpan {
  const { at, order, scaleFactor } = tag;
  const { format, read } = isRegisterTable(at.table) ? formatOf(tag) : noFormat;
  const { table, start, count } = spanOf(at);
  // A copy by spreading would use more memory per object.
  const value: TagSpan = {
    table,
    start,
    count,
    values: [
      {
        tag: index as TagId, // the brand's own definition: the index in the configuration
        start: at.address,
        address: formatAddress(at),
        captures: noCaptures,
        format,
        read,
        scale: scaleFactor && {
          start: scaleFactor.address,
          format: {
            // The default type is u16, but a scale factor may be negative.
            type: scaleFactor.type === "u16" ? "i16" : scaleFactor.type,
            order: scaleFactor.order ?? order ?? "abcd",
          },
        },
      },
    ],
  };
  return scaleFactor ? joined([value, { ...spanOf(scaleFactor), values: [] }]) : value;
}

type TagFormat = Pick<TagRead, "format" | "read">;
type FormatOf = (tag: DriverTag<typeof modbusTag>) => TagFormat;
const noFormat: TagFormat = { format: undefined, read: undefined };

/** Returns the same objects for equal formats. */
function formatMaker(): FormatOf {
  const formats = new Map<string, TagFormat>();
  return ({ at, order, nullValues, scaleFactor }) => {
    const { type, bit, toBit } = at;
    const format = { type, order: at.order ?? order ?? "abcd", bit, toBit, nullValues };
    const isAlone = nullValues === undefined && scaleFactor === undefined && type !== "bit";
    const key = JSON.stringify([format, isAlone]);
    const known = formats.get(key) ?? { format, read: isAlone ? registerReader(format) : undefined };
    formats.set(key, known);
    return known;
  };
}

function spanOf(address: Address): Span {
  const count = isRegisterTable(address.table) ? registersFor(address) : 1;
  return { table: address.table, start: address.address, count };
}

/** The range of at least one span. `table` is that of the first. */
function cover(spans: readonly Span[]): Span {
  const start = Math.min(...spans.map((span) => span.start));
  const end = Math.max(...spans.map((span) => span.start + span.count));
  return { table: spans[0]!.table, start, count: end - start }; // see above
}

function joined(parts: readonly TagSpan[]): TagSpan {
  const [only, ...others] = parts;
  if (only && others.length === 0) return only;
  const { table, start, count } = cover(parts);
  return { table, start, count, values: parts.flatMap((part) => part.values) };
}

function limitsOf(options: ModbusOptions, { maxRegisters, forbid }: DriverTag<typeof modbusTag>): Limits {
  const { maxBits, maxGap } = options;
  return { maxRegisters: maxRegisters ?? options.maxRegisters, maxBits, maxGap, forbid };
}

// Checks Modbus tags against each other and against the options of their source. Pure.

type Tag = DriverTag<typeof modbusTag>;
type Config = Pick<ModbusConfig, "options" | "tags">;

/** Faults in the order of the tags. Without faults, every tag is readable and every atomic group fits one request. */
export function configFaults({ options, tags }: Config): readonly ConfigFault[] {
  const faults: ConfigFault[] = [];
  const bus = options.url.frames !== "mbap";
  const groups = new Map<string, { readonly first: Tag; span: Span }>();
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
    const own = cover([at, ...(scaleFactor ? [scaleFactor] : [])].map(spanOf));
    const lengthField = tag.maxRegisters === undefined ? "at" : "maxRegisters";
    if (spanOf(at).count > most)
      add(lengthField, `${formatAddress(at)} takes more than the ${most} registers of a request`, raise);
    else if (scaleFactor && scaleFactor.table !== at.table)
      add("scaleFactor", `must lie in ${at.table}: as the value does, since one request reads both`, sameTable);
    else if (own.count > most)
      add(
        "scaleFactor",
        `lies too far from ${formatAddress(at)} for one request, which reads ${most} at most`,
        scaleFactor && isRegisterTable(at.table) ? "a factor that never changes can stand as scale:" : raise,
      );
    else if (atomic !== undefined) {
      const key = JSON.stringify([unit, atomic]);
      const group = groups.get(key) ?? { first: tag, span: own };
      groups.set(key, group);
      const other = differenceOf(group.first, tag);
      const span = cover([group.span, own]);
      if (other !== undefined)
        add(
          "atomic",
          `${atomic} has tags with another ${other}, which one request cannot read`,
          `give all of them the same ${other}`,
        );
      else if (span.count > most)
        add(
          "atomic",
          `${atomic} reaches over ${span.count}, a request reads ${most} at most`,
          "leave out the tags that lie farthest",
        );
      else group.span = span;
    }
  }
  return faults;
}

const raise = "raise maxRegisters where the device allows it";
const sameTable = "hr: and ir: are read by different functions";

function limitOf(options: Config["options"], { at, maxRegisters }: Tag): number {
  const most = isRegisterTable(at.table) ? (maxRegisters ?? options.maxRegisters) : options.maxBits;
  return Math.min(most, protocolLimit[at.table]);
}

/** The option that prevents reading two tags in one request. */
function differenceOf(a: Tag, b: Tag): string | undefined {
  if (a.at.table !== b.at.table) return "table";
  return (["every", "timeout", "maxRegisters", "forbid"] as const).find(
    (field) => JSON.stringify(a[field]) !== JSON.stringify(b[field]),
  );
}
