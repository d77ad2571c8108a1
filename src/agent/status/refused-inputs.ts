// Inputs and addresses whose readings are not stored: a list for `/api/status`, and one warning for each Input ID.
import type { Mapping } from "../../mapping/mapping.ts";
import type { RefusedInputStatus, Warning } from "./status.ts";
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
