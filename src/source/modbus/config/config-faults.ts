// What is wrong with Modbus tags only when they are seen beside each other, or beside the options of their source. Pure.
import type { ConfigFault, DriverTag, TagId } from "../../../core/source.ts";
import type { Address } from "./address.ts";
import { formatAddress } from "./address.ts";
import type { modbusTag } from "./options.ts";
import { protocolLimit } from "./pdu.ts";
import { isRegisterTable } from "./value-type.ts";
import type { ModbusConfig } from "./wanted.ts";
import { spanOf } from "./wanted.ts";

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
