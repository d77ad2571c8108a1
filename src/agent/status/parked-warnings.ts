// What an operator is shown of inputs that the service does not take.
import type { ParkedStatus } from "../../upload/delivery/parked-inputs.ts";
import type { Warning } from "./status.ts";

const mostNamed = 5;
const kinds = [
  { why: "refused", verb: "refuses", remedy: "see its reason; they are tried again by themselves, nothing is dropped" },
  {
    why: "unconfirmed",
    verb: "does not name in its answers",
    remedy: "ask the operator of the service; they are tried again by themselves, nothing is dropped",
  },
] as const;

/** One for each kind: what waits, why, and when it is tried again. */
export function parkedWarnings(parked: ParkedStatus | undefined): Warning[] {
  if (!parked) return [];
  return kinds.flatMap(({ why, verb, remedy }): Warning[] => {
    const count = parked[why];
    if (count === 0) return [];
    const named = parked.first
      .filter((each) => each.why === why)
      .slice(0, mostNamed)
      .map(({ input, reason, retryInMs }) => `${input} (${reason}; next try in ${Math.ceil(retryInMs / 1_000)} s)`);
    const more = count > named.length ? ` and ${count - named.length} more` : "";
    const inputs = count === 1 ? "1 input" : `${count} inputs`;
    const message = `points wait in the buffer: the service ${verb} ${inputs}: ${named.join(", ")}${more}`;
    return [{ level: "error", message, remedy }];
  });
}
