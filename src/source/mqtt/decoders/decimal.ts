// Numbers in text. Pure.

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const integer = /^[+-]?\d+$/;

/** The number that `text` is, or undefined. An integer that a double cannot hold comes as a bigint. */
export function parseDecimal(text: string): number | bigint | undefined {
  if (!decimal.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) || !integer.test(text) ? value : BigInt(text.replace(/^\+/, ""));
}
