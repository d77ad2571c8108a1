// Splits a formula into numbers, names and symbols with positions.

/** The message is for the author of the formula. */
export class FormulaError extends Error {
  override readonly name = "FormulaError";
}

export interface Token {
  readonly text: string;
  /** Position of its first character, counted from 1. */
  readonly at: number;
}

const token =
  /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([A-Za-z_]\w*)|(\*\*|[=!<>]=|&&|\|\||[-+*/%(),<>!?:]))/y;

/** Throws `FormulaError`. */
export function tokens(text: string): Token[] {
  const found: Token[] = [];
  const end = text.trimEnd().length;
  token.lastIndex = 0;
  while (token.lastIndex < end) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new FormulaError(`is not understood at ${JSON.stringify(text.slice(at).trim().slice(0, 20))}`);
    const [, number, name, symbol = ""] = match;
    const part = number ?? name ?? symbol;
    found.push({ text: part, at: token.lastIndex - part.length + 1 });
  }
  return found;
}

export function tokenPlace({ text, at }: Token): string {
  return `${JSON.stringify(text)} at character ${at}`;
}
