// Regular expressions of filters: the syntax and the engine of RE2, whose time grows with the length of the text and never
// explodes, and bounds on what those of one request cost together.

import { createRequire } from "node:module";
import type * as Re2 from "re2js";
import { reasonOf } from "../../core/errors.ts";

/** Spent by compiling and matching; shared by everything one request matches. */
export interface StepBudget {
  left: number;
}

/** Thrown when the budget is spent. */
export class RegexBudgetError extends Error {
  override readonly name = "RegexBudgetError";
}

/** The reason is for the author of the pattern. */
export class RegexSyntaxError extends Error {
  override readonly name = "RegexSyntaxError";
}

const maxPattern = 1_000;
/** Characters once repetitions are written out, which the engine does before it tells how many instructions they make. */
const maxWrittenOut = 100_000;
/** RE2 allows no more, also where repetitions are in each other. */
const maxCopies = 1_000;
const maxInstructions = 2_000;
/** Compiling an instruction takes as long as so many steps of matching, which take 20 to 50 ns. */
const stepsToCompile = 100;

/** Tells whether a text contains a match. Unanchored, as in most query languages. */
export class LinearRegex {
  readonly #regex: Re2.RE2JS;

  /** Throws `RegexSyntaxError` or `RegexBudgetError`. */
  constructor(pattern: string, budget: StepBudget = { left: Number.POSITIVE_INFINITY }) {
    if (pattern.length > maxPattern) throw new RegexSyntaxError(`must have at most ${maxPattern} characters`);
    const writtenOut = pattern.length * copies(pattern);
    if (writtenOut > maxWrittenOut) throw new RegexSyntaxError("has too many repetitions");
    spend(budget, writtenOut * stepsToCompile);
    this.#regex = compiled(pattern);
    if (this.#regex.programSize() > maxInstructions) throw new RegexSyntaxError("has too many repetitions");
  }

  /** Throws `RegexBudgetError`. Each character may cost a step of each instruction, so that many are spent. */
  test(text: string, budget: StepBudget): boolean {
    spend(budget, (text.length + 1) * this.#regex.programSize());
    // Not `test()` of the library: it keeps states of 4 kB for each expression, ten thousand of them.
    return this.#regex.matcher(text).find();
  }
}

function spend(budget: StepBudget, steps: number): void {
  budget.left -= steps;
  if (budget.left < 0) throw new RegexBudgetError("the regular expressions of this filter take too long");
}

/** How often a part of the pattern may be written out, at most: the largest repetitions of all depths multiply. */
function copies(pattern: string): number {
  // Brackets in quotes and in classes are none.
  const bare = pattern.replaceAll(/\\Q.*?(?:\\E|$)|\\.|\[\^?\]?(?:\\.|[^\]])*\]/gs, "_");
  const largest: number[] = [];
  let depth = 0;
  for (const [found, least, most] of bare.matchAll(/[()]|\{(\d+),?(\d*)\}/g))
    if (found === "(") depth++;
    else if (found === ")") depth--;
    else largest[depth] = Math.max(largest[depth] ?? 1, Number(most || least));
  return Math.min(
    maxCopies,
    Object.values(largest).reduce((product, count) => product * count, 1),
  );
}

function compiled(pattern: string): Re2.RE2JS {
  // Loaded with the first expression: most requests have none.
  const { RE2JS: engine } = createRequire(import.meta.url)("re2js") as typeof Re2; // what the package has
  try {
    return engine.compile(pattern, engine.DISABLE_UNICODE_GROUPS);
  } catch (error) {
    const reason = reasonOf(error);
    throw new RegexSyntaxError(reason.replace(/^error parsing regexp:/, "is no regular expression of RE2:"), {
      cause: error,
    });
  }
}
