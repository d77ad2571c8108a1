// Numbers in text. Pure.

const decimal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
/** No double is larger than 310 digits; a number of a million would cost its parser a second. */
const integer = /^[+-]?\d{1,310}$/;

/** Whether `text` is an integer of a size that numbers have. */
export function isInteger(text: string): boolean {
  return integer.test(text);
}

/** The number that `text` is, or undefined. An integer that a double cannot hold comes as a bigint. */
export function parseDecimal(text: string): number | bigint | undefined {
  if (!decimal.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) || !isInteger(text) ? value : BigInt(text.replace(/^\+/, ""));
}
