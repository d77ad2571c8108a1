// Meanings and consequences of Modbus exception codes.
import type { Result } from "./framing.ts";

/**
 * `unsupported`: the table or address does not exist; retry rarely. `split`: part of the block does not exist, or it is
 * too long. `busy`: retry soon. `fault`: no value this time. `away`: a gateway cannot reach the unit.
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

/** Example: `exception 2: illegal data address …`. */
export function describeException(code: number): string {
  return `exception ${code}: ${known[code]?.meaning ?? "a code of the vendor's own"}`;
}

/** A unit that sends its own exception is present. */
export function isAlive(result: Result): boolean {
  return result.kind === "data" || (result.kind === "exception" && consequenceOf(result.code) !== "away");
}

/** A unit that is present and not busy. */
export function isResponsive(result: Result): boolean {
  return isAlive(result) && !(result.kind === "exception" && consequenceOf(result.code) === "busy");
}

export function describeContested({ always }: Extract<Result, { kind: "contested" }>): string {
  const every = "another master on the bus reads each length that can be asked for";
  return always
    ? `${every}, so that answers could not be matched to requests`
    : "answers could not be distinguished from those to another master on the bus";
}
