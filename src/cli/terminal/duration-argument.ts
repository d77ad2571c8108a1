// A length of time as an argument of a command.
import { InvalidArgumentError } from "commander";
import { parseDuration } from "../../lib/duration.ts";

/** Milliseconds. */
export function durationArgument(text: string): number {
  const ms = parseDuration(text);
  if (ms === undefined) throw new InvalidArgumentError("expected a length of time such as 20s or 2m");
  return ms;
}
