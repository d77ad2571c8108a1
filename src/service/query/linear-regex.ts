// Regular expressions of filters, by the RE2 engine with linear run time, and with a step budget.

import { createRequire } from "node:module";
import type * as Re2 from "re2js";
import { reasonOf } from "../../core/errors.ts";

/** Steps left for all compiling and matching of a request. */
export interface StepBudget {
  left: number;
}

/** The step budget is exhausted. */
export class RegexBudgetError extends Error {
  override readonly name = "RegexBudgetError";
}

/** The message is for the author of the pattern. */
export class RegexSyntaxError extends Error {
  override readonly name = "RegexSyntaxError";
}

const maxPattern = 1_000;
/** Length limit with repetitions expanded. The engine expands them before it reports the number of instructions. */
const maxWrittenOut = 100_000;
/** RE2's limit, which includes nested repetitions. */
const maxCopies = 1_000;
const maxInstructions = 2_000;
/** Compiling an instruction takes as long as this many matching steps of 20 to 50 ns. */
const stepsToCompile = 100;

/** Tests whether a text contains a match. Unanchored, as in most query languages. */
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

  /** Throws `RegexBudgetError`. Charges one step for each character and instruction, the worst case. */
  test(text: string, budget: StepBudget): boolean {
    spend(budget, (text.length + 1) * this.#regex.programSize());
    // Not the library's `test()`, which keeps up to ten thousand states of 4 kB for each expression.
    return this.#regex.matcher(text).find();
  }
}

function spend(budget: StepBudget, steps: number): void {
  budget.left -= steps;
  if (budget.left < 0) throw new RegexBudgetError("the regular expressions of this filter take too long");
}

/** Upper bound for the expansion of a part: the product of the largest repetitions at all depths. */
function copies(pattern: string): number {
  // Ignore brackets in quotes and character classes.
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
  // Loaded with the first expression, since most requests have none.
  const { RE2JS: engine } = createRequire(import.meta.url)("re2js") as typeof Re2; // the type of the package
  try {
    return engine.compile(pattern, engine.DISABLE_UNICODE_GROUPS);
  } catch (error) {
    const reason = reasonOf(error);
    throw new RegexSyntaxError(reason.replace(/^error parsing regexp:/, "is no regular expression of RE2:"), {
      cause: error,
    });
  }
}
