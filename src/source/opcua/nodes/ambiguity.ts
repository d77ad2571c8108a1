// Whether several variables that a pattern finds can come to one Input ID. Pure.
import type { Ambiguity } from "../../../core/source.ts";
import { type Address, isDeep, parsePath } from "../config/node-address.ts";

/** `names`: the captured names that fill the Input ID. */
export function browseAmbiguity({ browse }: Address, names: readonly string[]): Ambiguity | undefined {
  if (browse === undefined || names.includes("path")) return undefined;
  const steps = parsePath(browse);
  const wild = steps.findIndex(({ name }) => name.includes("*"));
  const last = steps.at(-1);
  if (wild < 0 || last === undefined) return undefined;
  // Variables of one folder have different names.
  if (names.includes("name") && wild === steps.length - 1 && !isDeep(last)) return undefined;
  const which = names.includes("name") ? "have the same name" : "come to this Input ID";
  return {
    message: `several variables below ${browse} may ${which}; the first one feeds an Input ID, values of the others are refused`,
    remedy: "use {path} in `input`, which differs for each of them; or write `shared: true`",
  };
}
