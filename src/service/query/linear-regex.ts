// Regular expressions whose cost grows with the length of the text and never explodes: all alternatives are followed at
// once (Thompson's construction), nothing is tried again.
import type { CharTest, RegexNode } from "./regex-syntax.ts";
import { isWord, parseRegex, RegexSyntaxError } from "./regex-syntax.ts";

type Instruction =
  | { readonly kind: "char"; readonly test: CharTest }
  | { readonly kind: "at"; readonly where: "start" | "end" | "word" | "noWord" }
  | { readonly kind: "fork"; first: number; second: number }
  | { readonly kind: "jump"; to: number }
  | { readonly kind: "match" };

/** Repetitions are written out, so this bounds what `((a{100}){100})` may become. */
const maxInstructions = 2_000;

/** Spent by matching; shared by everything one request matches. */
export interface StepBudget {
  left: number;
}

/** Thrown when the budget is spent. */
export class RegexBudgetError extends Error {
  override readonly name = "RegexBudgetError";
}

/** Tells whether a text contains a match. Unanchored, as in most query languages. */
export class LinearRegex {
  readonly #program: readonly Instruction[];

  /** Throws `RegexSyntaxError`. */
  constructor(pattern: string) {
    const program: Instruction[] = [];
    emit(parseRegex(pattern), program);
    program.push({ kind: "match" });
    this.#program = program;
  }

  /** Throws `RegexBudgetError`. */
  test(text: string, budget: StepBudget): boolean {
    const program = this.#program;
    const codes = Array.from(text, (char) => char.codePointAt(0) ?? 0);
    let current: number[] = [];
    let next: number[] = [];
    const seen = new Int32Array(program.length).fill(-1);
    const pending: number[] = [];
    // Follows what costs no character; true when the match is reached.
    const add = (threads: number[], start: number, at: number): boolean => {
      pending.push(start);
      for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
        if (seen[pc] === at) continue;
        seen[pc] = at;
        budget.left--;
        const instruction = program[pc]!;
        if (instruction.kind === "match") {
          pending.length = 0;
          return true;
        }
        if (instruction.kind === "char") threads.push(pc);
        else if (instruction.kind === "jump") pending.push(instruction.to);
        else if (instruction.kind === "fork") pending.push(instruction.second, instruction.first);
        else if (holds(instruction.where, codes, at)) pending.push(pc + 1);
      }
      return false;
    };
    for (let at = 0; ; at++) {
      if (add(current, 0, at)) return true;
      if (at === codes.length) return false;
      if (budget.left < 0) throw new RegexBudgetError("the regular expressions of this filter take too long");
      const code = codes[at]!;
      for (const pc of current) {
        const instruction = program[pc]!;
        if (instruction.kind === "char" && instruction.test(code) && add(next, pc + 1, at + 1)) return true;
      }
      budget.left -= current.length;
      [current, next] = [next, current];
      next.length = 0;
    }
  }
}

function emit(node: RegexNode, program: Instruction[]): void {
  if (program.length > maxInstructions) throw new RegexSyntaxError("has too many repetitions");
  switch (node.kind) {
    case "char":
    case "at":
      program.push(node);
      break;
    case "all":
      for (const part of node.parts) emit(part, program);
      break;
    case "any": {
      const ends: { to: number }[] = [];
      for (const [index, part] of node.parts.entries()) {
        const last = index === node.parts.length - 1;
        const fork = { kind: "fork" as const, first: program.length + 1, second: 0 };
        if (!last) program.push(fork);
        emit(part, program);
        if (last) continue;
        const jump = { kind: "jump" as const, to: 0 };
        program.push(jump);
        ends.push(jump);
        fork.second = program.length;
      }
      for (const jump of ends) jump.to = program.length;
      break;
    }
    case "repeat":
      emitRepeat(node, program);
      break;
    default:
      node satisfies never;
  }
}

function emitRepeat({ part, min, max }: RegexNode & { readonly kind: "repeat" }, program: Instruction[]): void {
  for (let i = 0; i < min; i++) emit(part, program);
  if (max === Number.POSITIVE_INFINITY) {
    const fork = { kind: "fork" as const, first: program.length + 1, second: 0 };
    program.push(fork);
    emit(part, program);
    program.push({ kind: "jump", to: fork.first - 1 });
    fork.second = program.length;
    return;
  }
  const forks: { second: number }[] = [];
  for (let i = min; i < max; i++) {
    const fork = { kind: "fork" as const, first: program.length + 1, second: 0 };
    program.push(fork);
    forks.push(fork);
    emit(part, program);
  }
  for (const fork of forks) fork.second = program.length;
}

function holds(where: "start" | "end" | "word" | "noWord", codes: readonly number[], at: number): boolean {
  if (where === "start") return at === 0;
  if (where === "end") return at === codes.length;
  const before = at > 0 && isWord(codes[at - 1]!);
  const after = at < codes.length && isWord(codes[at]!);
  return (before !== after) === (where === "word");
}
