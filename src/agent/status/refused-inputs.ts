// Inputs and addresses whose readings are not stored: a list for `/api/status`, and one warning for each Input ID.
import type { InputTimeFault, Mapping } from "../../mapping/mapping.ts";
import type { RefusedInputStatus, TimeFaultStatus, TimeFaultsStatus, Warning } from "./status.ts";
import { counted, firstOf } from "./words.ts";

/** Most addresses that a warning names; the others are counted. */
const mostNamed = 3;

export function refusedInputsOf(source: string, mapping: Pick<Mapping, "refusals">): readonly RefusedInputStatus[] {
  return mapping.refusals().map(({ tag: _tag, ...refused }) => ({ source, ...refused }));
}

/** One warning for each Input ID, since a wildcard may match hundreds of addresses. */
export function refusalWarnings(refused: readonly RefusedInputStatus[]): readonly Warning[] {
  const groups = Map.groupBy(refused, ({ source, input, fedBy }) =>
    JSON.stringify([source, input, fedBy?.source, fedBy?.address]),
  );
  const ids = new Set(refused.map(({ source, input }) => `${source} ${input}`)).size;
  const title = `readings refused for ${counted(ids, "Input ID")}`;
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [{ level: "error" as const, title, ...warningOf(first, group) }] : [];
  });
}

/** `group`: all inputs refused for the same reason as `first`. */
function warningOf(
  { input, source, fedBy, reason, remedy }: RefusedInputStatus,
  group: readonly RefusedInputStatus[],
): Omit<Warning, "level"> {
  const lost = group.reduce((sum, { readings }) => sum + readings, 0);
  const notStored = `${lost} readings were not stored`;
  if (!fedBy) return { message: `${input}: ${reason}; ${notStored}`, remedy };
  const addresses = group.map(({ address }) => address).filter((address) => address !== "");
  const named = firstOf(addresses.length, addresses, mostNamed);
  const feeder = `${fedBy.source}${fedBy.address === "" ? "" : ` ${fedBy.address}`}`;
  const second = named === "" ? `a tag of ${source}` : `${source} ${named}`;
  return { message: `${input} is fed by ${feeder}; refused: ${second}; ${notStored}`, remedy };
}

interface Named {
  readonly source: string;
  readonly mapping: Pick<Mapping, "timeFaults">;
}

export function timeFaultsOf(sources: readonly Named[]): TimeFaultsStatus {
  const all = sources.map(({ source, mapping }) => ({ source, ...mapping.timeFaults() }));
  return {
    standing: all.reduce((sum, { standing }) => sum + standing, 0),
    repeats: all.reduce((sum, { repeats }) => sum + repeats, 0),
    first: all.flatMap(({ source, first }) => first.map(({ tag: _tag, ...fault }) => ({ source, ...fault }))),
  };
}

export function timeFaultWarnings({ standing, repeats, first }: TimeFaultsStatus): readonly Warning[] {
  return [
    ...about(first, "standing", standing, {
      what: (inputs) => `the device clock stands still for ${inputs}`,
      detail: ({ readings, forMs }) => `${readings} readings with one time in ${Math.round(forMs / 1_000)} s`,
      remedy:
        "set the device's clock, or set another `time` on the tag; of values with one time only the last is kept, unless the tag has `sameTime: keep`",
    }),
    ...about(first, "repeats", repeats, {
      what: (inputs) => `values often have the time of the one before and replace it, for ${inputs}`,
      detail: (fault) => `${fault.repeats} of ${fault.readings} readings`,
      remedy:
        "where each value counts, set `sameTime: keep` or another `time` on the tag, or the device's clock; nothing where a later value is meant to replace the one before",
    }),
  ];
}

interface Words {
  readonly what: (inputs: string) => string;
  readonly detail: (fault: TimeFaultStatus) => string;
  readonly remedy: string;
}

function about(
  all: readonly TimeFaultStatus[],
  kind: InputTimeFault["kind"],
  count: number,
  { what, detail, remedy }: Words,
): Warning[] {
  if (count === 0) return [];
  const first = all
    .filter((fault) => fault.kind === kind)
    .map((fault) => `${fault.source} ${fault.input} (${detail(fault)})`);
  const title = what(counted(count, "Input ID"));
  return [
    { level: "warn", ...(kind === "standing" && { title }), message: `${title}: ${firstOf(count, first)}`, remedy },
  ];
}
