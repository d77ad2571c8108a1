// Formulas over series: a small language of our own, read into a tree and computed row by row. Nothing is ever run as code.
//
//   + - * / % **   ( )   numbers   aliases   PI E bucket_seconds time_seconds
//   abs ceil floor round trunc sign sqrt exp ln log log2 log10 sin cos tan asin acos atan atan2 pow min max gapfill
//
// A missing value is NaN, and what is computed from it is missing too. `**` binds to the right and more tightly than a sign.

export type Formula =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "call"; readonly name: string; readonly args: readonly Formula[] };

/** The reason is for the author of the formula. */
export class FormulaError extends Error {
  override readonly name = "FormulaError";
}

/** What a formula may name. Columns have one value for each row. */
interface FormulaScope {
  readonly rows: number;
  column(name: string): Float64Array;
  /** The column of an item with its gaps filled. */
  gapfilled(name: string): Float64Array;
}

const maxLength = 2_000;
const maxDepth = 100;

export const constants: Readonly<Record<string, number>> = { PI: Math.PI, E: Math.E };

type Compute = (...args: number[]) => number;
/** Functions of one argument that are called as in `Math`. */
const ofMath = ["abs", "ceil", "floor", "round", "trunc", "sign", "sqrt", "exp", "log", "log2", "log10"] as const;
const angles = ["sin", "cos", "tan", "asin", "acos", "atan"] as const;
/** Name → how many arguments it takes at least and at most, and what it computes. */
const functions = new Map<string, readonly [min: number, max: number, compute: Compute]>([
  ["+", [2, 2, (a = 0, b = 0) => a + b]],
  ["-", [2, 2, (a = 0, b = 0) => a - b]],
  ["*", [2, 2, (a = 0, b = 0) => a * b]],
  ["/", [2, 2, (a = 0, b = 0) => a / b]],
  ["%", [2, 2, (a = 0, b = 0) => a % b]],
  ["**", [2, 2, (a = 0, b = 0) => a ** b]],
  ["negate", [1, 1, (a = 0) => -a]],
  ...[...ofMath, ...angles].map((name) => [name, [1, 1, Math[name]]] as const),
  ["ln", [1, 1, Math.log]],
  ["atan2", [2, 2, Math.atan2]],
  ["pow", [2, 2, Math.pow]],
  ["min", [1, 50, Math.min]],
  ["max", [1, 50, Math.max]],
]);

/** Throws `FormulaError`. */
export function parseFormula(text: string): Formula {
  if (text.length > maxLength) throw new FormulaError(`must have at most ${maxLength} characters`);
  return new Parser(tokens(text)).parse();
}

/** Every name in it that is no constant, with those that stand in `gapfill` apart. */
export function namesIn(formula: Formula): {
  readonly names: ReadonlySet<string>;
  readonly gapfilled: ReadonlySet<string>;
} {
  const names = new Set<string>();
  const gapfilled = new Set<string>();
  const visit = (node: Formula, filled: boolean) => {
    if (node.kind === "name" && !Object.hasOwn(constants, node.name)) (filled ? gapfilled : names).add(node.name);
    if (node.kind === "call") for (const arg of node.args) visit(arg, node.name === "gapfill");
  };
  visit(formula, false);
  return { names, gapfilled };
}

/** One value for each row. */
export function computeFormula(formula: Formula, scope: FormulaScope): Float64Array {
  switch (formula.kind) {
    case "number":
      return new Float64Array(scope.rows).fill(formula.value);
    case "name":
      return Object.hasOwn(constants, formula.name)
        ? new Float64Array(scope.rows).fill(constants[formula.name] ?? Number.NaN)
        : scope.column(formula.name);
    case "call": {
      const [only] = formula.args;
      if (formula.name === "gapfill") return scope.gapfilled(only?.kind === "name" ? only.name : "");
      const args = formula.args.map((arg) => computeFormula(arg, scope));
      const compute = functions.get(formula.name)?.[2];
      const result = new Float64Array(scope.rows);
      if (compute)
        for (let row = 0; row < scope.rows; row++) result[row] = compute(...args.map((arg) => arg[row] ?? Number.NaN));
      return result;
    }
    default:
      return formula satisfies never;
  }
}

const token = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[-+*/%(),]))/y;

function tokens(text: string): string[] {
  const found: string[] = [];
  const end = text.trimEnd().length;
  token.lastIndex = 0;
  while (token.lastIndex < end) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new FormulaError(`is not understood at ${JSON.stringify(text.slice(at).trim().slice(0, 20))}`);
    found.push(match[1] ?? match[2] ?? match[3] ?? "");
  }
  return found;
}

const precedences = new Map(Object.entries({ "+": 1, "-": 1, "*": 2, "/": 2, "%": 2 }));

class Parser {
  readonly #tokens: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(found: readonly string[]) {
    this.#tokens = found;
  }

  parse(): Formula {
    const formula = this.#operation();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw new FormulaError(`does not expect ${JSON.stringify(rest)} here`);
    return formula;
  }

  /** Operators that bind to the left, with at least this precedence. */
  #operation(least = 1): Formula {
    let left = this.#signed();
    for (;;) {
      const name = this.#tokens[this.#at] ?? "";
      const precedence = precedences.get(name) ?? 0;
      if (precedence < least) return left;
      this.#at++;
      left = { kind: "call", name, args: [left, this.#operation(precedence + 1)] };
    }
  }

  #signed(): Formula {
    if (++this.#depth > maxDepth) throw new FormulaError(`must not be nested more than ${maxDepth} deep`);
    const formula = this.#take("-")
      ? ({ kind: "call", name: "negate", args: [this.#signed()] } as const)
      : this.#take("+")
        ? this.#signed()
        : this.#power();
    this.#depth--;
    return formula;
  }

  #power(): Formula {
    const base = this.#atom();
    return this.#take("**") ? { kind: "call", name: "**", args: [base, this.#signed()] } : base;
  }

  #atom(): Formula {
    const found = this.#tokens[this.#at++];
    if (found === undefined) throw new FormulaError("ends too early");
    if (found === "(") {
      const inner = this.#operation();
      this.#expect(")");
      return inner;
    }
    if (/^[\d.]/.test(found)) return { kind: "number", value: Number(found) };
    if (!/^[A-Za-z_]/.test(found)) throw new FormulaError(`does not expect ${JSON.stringify(found)} here`);
    return this.#take("(") ? this.#call(found) : { kind: "name", name: found };
  }

  #call(name: string): Formula {
    const args: Formula[] = [];
    if (!this.#take(")")) {
      do args.push(this.#operation());
      while (this.#take(","));
      this.#expect(")");
    }
    if (name === "gapfill") {
      const [only] = args;
      if (args.length !== 1 || only?.kind !== "name") throw new FormulaError("gapfill takes the alias of one item");
      return { kind: "call", name, args };
    }
    const known = name === "negate" ? undefined : functions.get(name);
    if (!known) throw new FormulaError(`does not know the function ${name}`);
    const [min, max] = known;
    if (args.length < min || args.length > max)
      throw new FormulaError(`${name} takes ${min === max ? min : `${min} to ${max}`} arguments, not ${args.length}`);
    return { kind: "call", name, args };
  }

  #take(wanted: string): boolean {
    if (this.#tokens[this.#at] !== wanted) return false;
    this.#at++;
    return true;
  }

  #expect(wanted: string): void {
    const found = this.#tokens[this.#at];
    if (!this.#take(wanted))
      throw new FormulaError(
        found === undefined ? "ends too early" : `expects ${wanted} before ${JSON.stringify(found)}`,
      );
  }
}
