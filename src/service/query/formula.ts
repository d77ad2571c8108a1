// Parses formulas over series into a tree and computes them row by row. Nothing is ever run as code.
//
//   + - * / % **   > >= < <= == !=   && || !   a ? b : c   ( )   numbers   aliases   PI E bucket_seconds time_seconds
//   abs ceil floor round trunc sign sqrt exp ln log log2 log10 sin cos tan asin acos atan atan2 pow min max if gapfill
//
// `**` is right-associative and binds more tightly than a sign; other operators have the precedence of C. Comparisons
// give 1 or 0, and any value except 0 is true. A missing value is NaN, which also makes results and comparisons NaN. A
// conditional depends only on its condition and the chosen value. `round` rounds halves away from zero.

/** The message is for the author of the formula. */
export class FormulaError extends Error {
  override readonly name = "FormulaError";
}

interface Token {
  readonly text: string;
  /** Position of its first character, counted from 1. */
  readonly at: number;
}

const token =
  /\s*(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|[A-Za-z_]\w*|\*\*|[=!<>]=|&&|\|\||[-+*/%(),<>!?:])/y;

/** Numbers, names and symbols. */
function tokens(text: string): Token[] {
  const found: Token[] = [];
  const end = text.trimEnd().length;
  token.lastIndex = 0;
  while (token.lastIndex < end) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new FormulaError(`is not understood at ${JSON.stringify(text.slice(at).trim().slice(0, 20))}`);
    const [, part = ""] = match;
    found.push({ text: part, at: token.lastIndex - part.length + 1 });
  }
  return found;
}

function tokenPlace({ text, at }: Token): string {
  return `${JSON.stringify(text)} at character ${at}`;
}

export type Formula =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "gapfill"; readonly name: string }
  | { readonly kind: "call"; readonly compute: Compute; readonly args: readonly Formula[] };

/** The names available to a formula. Columns have one value for each row. */
interface FormulaScope {
  readonly rows: number;
  column(name: string): Float64Array;
  /** The column of an item with its gaps filled. */
  gapfilled(name: string): Float64Array;
}

const maxLength = 2_000;
const maxDepth = 200;

export const constants: Readonly<Record<string, number>> = { PI: Math.PI, E: Math.E };

type Compute = (...args: number[]) => number;
const condition =
  (holds: (a: number, b: number) => boolean): Compute =>
  (a = 0, b = 0) =>
    Number.isNaN(a) || Number.isNaN(b) ? Number.NaN : Number(holds(a, b));
/** `Math.round` rounds -2.5 to -2. */
const round: Compute = (a = 0) => (a < 0 ? -Math.round(-a) : Math.round(a));
const choose: Compute = (a = 0, b = 0, c = 0) => (Number.isNaN(a) ? a : a !== 0 ? b : c);
/** JavaScript defines NaN ** 0 as 1. */
const power: Compute = (a = 0, b = 0) => (Number.isNaN(a) ? a : a ** b);
/** Functions with one argument and the name of their `Math` function. */
const ofMath = ["abs", "ceil", "floor", "trunc", "sign", "sqrt", "exp", "log", "log2", "log10"] as const;
const angles = ["sin", "cos", "tan", "asin", "acos", "atan"] as const;
/** Name → minimum and maximum number of arguments, and the function. */
const functions = new Map<string, readonly [min: number, max: number, compute: Compute]>([
  ...[...ofMath, ...angles].map((name) => [name, [1, 1, Math[name]]] as const),
  ["round", [1, 1, round]],
  ["ln", [1, 1, Math.log]],
  ["atan2", [2, 2, Math.atan2]],
  ["pow", [2, 2, power]],
  ["min", [1, 50, Math.min]],
  ["max", [1, 50, Math.max]],
  ["if", [3, 3, choose]],
]);

/** Symbol → precedence and function. All are left-associative. */
const operators = new Map<string, readonly [precedence: number, compute: Compute]>([
  ["||", [1, condition((a, b) => a !== 0 || b !== 0)]],
  ["&&", [2, condition((a, b) => a !== 0 && b !== 0)]],
  ["==", [3, condition((a, b) => a === b)]],
  ["!=", [3, condition((a, b) => a !== b)]],
  [">", [4, condition((a, b) => a > b)]],
  [">=", [4, condition((a, b) => a >= b)]],
  ["<", [4, condition((a, b) => a < b)]],
  ["<=", [4, condition((a, b) => a <= b)]],
  ["+", [5, (a = 0, b = 0) => a + b]],
  ["-", [5, (a = 0, b = 0) => a - b]],
  ["*", [6, (a = 0, b = 0) => a * b]],
  ["/", [6, (a = 0, b = 0) => a / b]],
  ["%", [6, (a = 0, b = 0) => a % b]],
]);
const negate: Compute = (a = 0) => -a;
const not: Compute = (a = 0) => (Number.isNaN(a) ? a : Number(a === 0));

/** Throws `FormulaError`. */
export function parseFormula(text: string): Formula {
  if (text.length > maxLength) throw new FormulaError(`must have at most ${maxLength} characters`);
  return new Parser(tokens(text)).parse();
}

/** Number of operations for each row. */
export function sizeOf(formula: Formula): number {
  return formula.kind === "call" ? formula.args.reduce((sum, arg) => sum + sizeOf(arg), 1) : 1;
}

/** All names except constants; those in `gapfill` separately. */
export function namesIn(formula: Formula): {
  readonly names: ReadonlySet<string>;
  readonly gapfilled: ReadonlySet<string>;
} {
  const names = new Set<string>();
  const gapfilled = new Set<string>();
  const visit = (node: Formula) => {
    if (node.kind === "name" && !Object.hasOwn(constants, node.name)) names.add(node.name);
    if (node.kind === "gapfill") gapfilled.add(node.name);
    if (node.kind === "call") for (const arg of node.args) visit(arg);
  };
  visit(formula);
  return { names, gapfilled };
}

export function computeFormula(formula: Formula, scope: FormulaScope): Float64Array {
  const valueOf = compiled(formula, scope);
  return Float64Array.from({ length: scope.rows }, (_, row) => valueOf(row));
}

function compiled(formula: Formula, scope: FormulaScope): (row: number) => number {
  switch (formula.kind) {
    case "number":
      return () => formula.value;
    case "name":
    case "gapfill": {
      const constant = formula.kind === "name" && Object.hasOwn(constants, formula.name) && constants[formula.name];
      if (typeof constant === "number") return () => constant;
      const column = formula.kind === "name" ? scope.column(formula.name) : scope.gapfilled(formula.name);
      return (row) => column[row] ?? Number.NaN;
    }
    case "call": {
      const { compute } = formula;
      const args = formula.args.map((arg) => compiled(arg, scope));
      const [a, b] = args;
      if (a && args.length === 1) return (row) => compute(a(row));
      if (a && b && args.length === 2) return (row) => compute(a(row), b(row));
      return (row) => compute(...args.map((arg) => arg(row)));
    }
    default:
      return formula satisfies never;
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(found: readonly Token[]) {
    this.#tokens = found;
  }

  parse(): Formula {
    const formula = this.#expression();
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw unexpected(rest);
    return formula;
  }

  #expression(): Formula {
    return this.#nested(() => {
      const asked = this.#operation();
      if (!this.#take("?")) return asked;
      const chosen = this.#expression();
      this.#expect(":");
      return { kind: "call", compute: choose, args: [asked, chosen, this.#expression()] };
    });
  }

  /** Parses left-associative operators of at least this precedence. */
  #operation(least = 1): Formula {
    let left = this.#signed();
    for (;;) {
      const [precedence, compute] = operators.get(this.#tokens[this.#at]?.text ?? "") ?? [];
      if (precedence === undefined || compute === undefined || precedence < least) return left;
      this.#at++;
      left = { kind: "call", compute, args: [left, this.#operation(precedence + 1)] };
    }
  }

  #signed(): Formula {
    return this.#nested(() => {
      if (this.#take("-")) return { kind: "call", compute: negate, args: [this.#signed()] };
      if (this.#take("!")) return { kind: "call", compute: not, args: [this.#signed()] };
      return this.#take("+") ? this.#signed() : this.#power();
    });
  }

  #nested(parse: () => Formula): Formula {
    if (++this.#depth > maxDepth) throw new FormulaError(`must not be nested more than ${maxDepth} deep`);
    const formula = parse();
    this.#depth--;
    return formula;
  }

  #power(): Formula {
    const base = this.#atom();
    return this.#take("**") ? { kind: "call", compute: power, args: [base, this.#signed()] } : base;
  }

  #atom(): Formula {
    const next = this.#tokens[this.#at++];
    if (next === undefined) throw new FormulaError("ends too early");
    const { text: found } = next;
    if (found === "(") {
      const inner = this.#expression();
      this.#expect(")");
      return inner;
    }
    if (/^[\d.]/.test(found)) return { kind: "number", value: Number(found) };
    if (!/^[A-Za-z_]/.test(found)) throw unexpected(next);
    return this.#take("(") ? this.#call(found) : { kind: "name", name: found };
  }

  #call(name: string): Formula {
    const args: Formula[] = [];
    if (!this.#take(")")) {
      do args.push(this.#expression());
      while (this.#take(","));
      this.#expect(")");
    }
    if (name === "gapfill") {
      const [only] = args;
      if (args.length !== 1 || only?.kind !== "name") throw new FormulaError("gapfill takes the alias of one item");
      return { kind: "gapfill", name: only.name };
    }
    const known = functions.get(name);
    if (!known)
      throw new FormulaError(`does not know the function ${name}, but ${[...functions.keys()].join(", ")}, gapfill`);
    const [min, max, compute] = known;
    if (args.length < min || args.length > max)
      throw new FormulaError(`${name} takes ${min === max ? min : `${min} to ${max}`} arguments, not ${args.length}`);
    return { kind: "call", compute, args };
  }

  #take(wanted: string): boolean {
    if (this.#tokens[this.#at]?.text !== wanted) return false;
    this.#at++;
    return true;
  }

  #expect(wanted: string): void {
    const found = this.#tokens[this.#at];
    if (this.#take(wanted)) return;
    throw new FormulaError(found ? `expects ${wanted} before ${tokenPlace(found)}` : "ends too early");
  }
}

function unexpected(found: Token): FormulaError {
  return new FormulaError(`does not expect ${tokenPlace(found)}`);
}
