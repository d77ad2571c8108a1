// Reads the syntax of regular expressions, as RE2 and its relatives have it: no look-around, no references backwards.
//
//   alternation  a|b        repetition  * + ? {n} {n,} {n,m}, lazy forms alike
//   groups       (…) (?:…) (?P<name>…) (?i) (?s) (?i:…)
//   classes      . [a-z] [^a-z] \d \w \s \D \W \S        positions  ^ $ \A \z \b \B

/** Whether a code point belongs to a class. */
export type CharTest = (code: number) => boolean;

export type RegexNode =
  | { readonly kind: "char"; readonly test: CharTest }
  | { readonly kind: "at"; readonly where: "start" | "end" | "word" | "noWord" }
  | { readonly kind: "all"; readonly parts: readonly RegexNode[] }
  | { readonly kind: "any"; readonly parts: readonly RegexNode[] }
  | { readonly kind: "repeat"; readonly part: RegexNode; readonly min: number; readonly max: number };

/** The reason is for the author of the pattern. */
export class RegexSyntaxError extends Error {
  override readonly name = "RegexSyntaxError";
}

const maxPattern = 1_000;
const maxNesting = 50;
const maxRepeat = 1_000;

interface Flags {
  readonly ignoreCase: boolean;
  readonly dotAll: boolean;
}

/** Throws `RegexSyntaxError`. */
export function parseRegex(pattern: string): RegexNode {
  if (pattern.length > maxPattern) throw new RegexSyntaxError(`must have at most ${maxPattern} characters`);
  return new Parser(Array.from(pattern)).parse();
}

class Parser {
  readonly #chars: readonly string[];
  #at = 0;
  #depth = 0;

  constructor(chars: readonly string[]) {
    this.#chars = chars;
  }

  parse(): RegexNode {
    const node = this.#alternation({ ignoreCase: false, dotAll: false });
    if (this.#at < this.#chars.length) throw new RegexSyntaxError("has a ) without its (");
    return node;
  }

  #alternation(flags: Flags): RegexNode {
    if (++this.#depth > maxNesting) throw new RegexSyntaxError(`must not be nested more than ${maxNesting} deep`);
    let current = flags;
    const parts: RegexNode[] = [];
    let sequence: RegexNode[] = [];
    for (;;) {
      const char = this.#chars[this.#at];
      if (char === undefined || char === ")") break;
      this.#at++;
      if (char === "|") {
        parts.push({ kind: "all", parts: sequence });
        sequence = [];
        continue;
      }
      if (char === "(") {
        const group = this.#group(current);
        if (group.node) sequence.push(this.#repeated(group.node));
        else current = group.flags;
        continue;
      }
      if ("*+?".includes(char)) throw new RegexSyntaxError(`has nothing to repeat before ${char}`);
      sequence.push(this.#repeated(this.#atom(char, current)));
    }
    this.#depth--;
    parts.push({ kind: "all", parts: sequence });
    return parts.length === 1 ? parts[0]! : { kind: "any", parts };
  }

  /** After `(`. Without a node: flags for the rest of the group around it. */
  #group(flags: Flags): { readonly node?: RegexNode; readonly flags: Flags } {
    let inner = flags;
    if (this.#chars[this.#at] === "?") {
      const rest = this.#chars.slice(this.#at).join("");
      const named = /^\?P?<[A-Za-z_]\w*>/.exec(rest);
      const flagged = /^\?([is]*)(-[is]+)?([:)])/.exec(rest);
      if (!named && !flagged)
        throw new RegexSyntaxError("has a group that is not understood: no look-around, flags i and s only");
      this.#at += Array.from((named ?? flagged)?.[0] ?? "").length;
      if (flagged) {
        const on = flagged[1] ?? "";
        const off = flagged[2] ?? "";
        inner = {
          ignoreCase: (flags.ignoreCase || on.includes("i")) && !off.includes("i"),
          dotAll: (flags.dotAll || on.includes("s")) && !off.includes("s"),
        };
        if (flagged[3] === ")") return { flags: inner };
      }
    }
    const node = this.#alternation(inner);
    if (this.#chars[this.#at++] !== ")") throw new RegexSyntaxError("has a ( without its )");
    return { node, flags };
  }

  #repeated(part: RegexNode): RegexNode {
    let node = part;
    for (;;) {
      const char = this.#chars[this.#at];
      const counted =
        char === "{" ? /^\{(\d{1,4})(,(\d{0,4}))?\}/.exec(this.#chars.slice(this.#at, this.#at + 12).join("")) : null;
      let min: number;
      let max: number;
      if (counted) {
        min = Number(counted[1]);
        max = counted[2] === undefined ? min : counted[3] === "" ? Number.POSITIVE_INFINITY : Number(counted[3]);
        if (min > maxRepeat || (max !== Number.POSITIVE_INFINITY && max > maxRepeat) || max < min)
          throw new RegexSyntaxError(`has a repetition that is not from 0 to ${maxRepeat}`);
        this.#at += counted[0].length;
      } else if (char === "*" || char === "+" || char === "?") {
        min = char === "+" ? 1 : 0;
        max = char === "?" ? 1 : Number.POSITIVE_INFINITY;
        this.#at++;
      } else return node;
      // Lazy or not makes no difference to whether there is a match.
      if (this.#chars[this.#at] === "?") this.#at++;
      node = { kind: "repeat", part: node, min, max };
    }
  }

  #atom(char: string, flags: Flags): RegexNode {
    switch (char) {
      case ".":
        return { kind: "char", test: flags.dotAll ? () => true : (code) => code !== 0x0a };
      case "^":
        return { kind: "at", where: "start" };
      case "$":
        return { kind: "at", where: "end" };
      case "[":
        return { kind: "char", test: folded(this.#class(), flags) };
      case "\\":
        return this.#escape(flags);
      default:
        return { kind: "char", test: folded(isCode(char), flags) };
    }
  }

  #escape(flags: Flags): RegexNode {
    const char = this.#chars[this.#at];
    const where =
      char === "A" ? "start" : char === "z" ? "end" : char === "b" ? "word" : char === "B" ? "noWord" : undefined;
    if (where === undefined) return { kind: "char", test: folded(this.#escapedChar(), flags) };
    this.#at++;
    return { kind: "at", where };
  }

  /** After a backslash: a class or one character. */
  #escapedChar(): CharTest {
    const char = this.#chars[this.#at++];
    if (char === undefined) throw new RegexSyntaxError("ends in a backslash");
    const shorthand = shorthands[char];
    if (shorthand) return shorthand;
    if (char === "x") return isCode(this.#hexChar());
    const control = controls[char];
    if (control !== undefined) return isCode(control);
    if (/[A-Za-z0-9]/.test(char)) throw new RegexSyntaxError(`has an escape that is not understood: \\${char}`);
    return isCode(char);
  }

  #hexChar(): string {
    const match = /^(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})/.exec(
      this.#chars.slice(this.#at, this.#at + 8).join(""),
    );
    const code = Number.parseInt(match?.[1] ?? match?.[2] ?? "", 16);
    if (!match || code > 0x10ffff) throw new RegexSyntaxError("has \\x without a character code");
    this.#at += match[0].length;
    return String.fromCodePoint(code);
  }

  /** After `[`. */
  #class(): CharTest {
    const negated = this.#chars[this.#at] === "^";
    if (negated) this.#at++;
    const tests: CharTest[] = [];
    for (let first = true; ; first = false) {
      const char = this.#chars[this.#at++];
      if (char === undefined) throw new RegexSyntaxError("has a [ without its ]");
      if (char === "]" && !first) break;
      if (char === "\\" && this.#chars[this.#at] !== "x") {
        const next = this.#chars[this.#at] ?? "";
        if (next in shorthands || !(next in controls || /\W|_/.test(next))) {
          tests.push(this.#escapedChar());
          continue;
        }
      }
      const low = this.#classChar(char);
      if (
        this.#chars[this.#at] === "-" &&
        this.#chars[this.#at + 1] !== "]" &&
        this.#chars[this.#at + 1] !== undefined
      ) {
        this.#at++;
        const high = this.#classChar(this.#chars[this.#at++] ?? "");
        if (high < low) throw new RegexSyntaxError("has a range in [ ] that is the wrong way round");
        tests.push((code) => code >= low && code <= high);
      } else tests.push((code) => code === low);
    }
    return negated ? (code) => !tests.some((test) => test(code)) : (code) => tests.some((test) => test(code));
  }

  #classChar(char: string): number {
    if (char !== "\\") return char.codePointAt(0) ?? 0;
    const escaped = this.#chars[this.#at++] ?? "";
    if (escaped === "x") return this.#hexChar().codePointAt(0) ?? 0;
    return (controls[escaped] ?? escaped).codePointAt(0) ?? 0;
  }
}

const isDigit: CharTest = (code) => code >= 0x30 && code <= 0x39;
const isSpace: CharTest = (code) => code === 0x20 || (code >= 0x09 && code <= 0x0d);
export const isWord: CharTest = (code) =>
  isDigit(code) || (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0x5f;

const shorthands: Readonly<Record<string, CharTest>> = {
  d: isDigit,
  D: (code) => !isDigit(code),
  s: isSpace,
  S: (code) => !isSpace(code),
  w: isWord,
  W: (code) => !isWord(code),
};
const controls: Readonly<Record<string, string>> = { t: "\t", n: "\n", r: "\r", f: "\f", v: "\v" };

function isCode(char: string): CharTest {
  const wanted = char.codePointAt(0);
  return (code) => code === wanted;
}

function folded(test: CharTest, { ignoreCase }: Flags): CharTest {
  if (!ignoreCase) return test;
  return (code) => {
    const char = String.fromCodePoint(code);
    const [lower, upper] = [char.toLowerCase().codePointAt(0) ?? code, char.toUpperCase().codePointAt(0) ?? code];
    return test(code) || test(lower) || test(upper);
  };
}
