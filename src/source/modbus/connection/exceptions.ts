// What the exception codes of Modbus mean, and what follows from each.
import type { Result } from "./framing.ts";

/**
 * `unsupported`: the table does not exist, or has a hole there; what is refused so alone is asked for rarely. `split`: part
 * of what was asked for does not exist, or it was too much. `busy`: ask again in a moment. `fault`: no value this time. `away`: a gateway cannot reach the unit.
 */
export type Consequence = "unsupported" | "split" | "busy" | "fault" | "away";

const known: Readonly<Record<number, { readonly meaning: string; readonly consequence: Consequence }>> = {
  1: { meaning: "illegal function: the device does not have this table", consequence: "unsupported" },
  2: { meaning: "illegal data address: the device does not have this address", consequence: "split" },
  3: { meaning: "illegal data value: the device does not allow so many at once", consequence: "split" },
  4: { meaning: "server device failure", consequence: "fault" },
  5: { meaning: "acknowledge: the device needs longer", consequence: "busy" },
  6: { meaning: "server device busy", consequence: "busy" },
  7: { meaning: "negative acknowledge", consequence: "fault" },
  8: { meaning: "memory parity error in the device", consequence: "fault" },
  10: { meaning: "gateway path unavailable: the gateway is misconfigured or overloaded", consequence: "away" },
  11: { meaning: "gateway target device failed to respond", consequence: "away" },
};

export function consequenceOf(code: number): Consequence {
  return known[code]?.consequence ?? "fault";
}

/** `exception 2: illegal data address …` */
export function describeException(code: number): string {
  return `exception ${code}: ${known[code]?.meaning ?? "a code of the vendor's own"}`;
}

/** A unit that answers with an exception of its own is there. */
export function isAlive(result: Result): boolean {
  return result.kind === "data" || (result.kind === "exception" && consequenceOf(result.code) !== "away");
}

/** A unit that is there and has the time to answer. */
export function isResponsive(result: Result): boolean {
  return isAlive(result) && !(result.kind === "exception" && consequenceOf(result.code) === "busy");
}

/** Why there is no value although something may have come. */
export function describeContested({ always }: Extract<Result, { kind: "contested" }>): string {
  const every = "another master on the bus reads each length that can be asked for";
  return always
    ? `${every}, so that answers could not be matched to requests`
    : "answers could not be distinguished from those to another master on the bus";
}
