// Escapes characters of foreign texts that control a terminal or change the order in which text is shown.

/** Control characters, bidirectional controls, and line and paragraph separators. */
const unseen = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Escapes characters that control a terminal (`\u001b`) in text from devices or the service. */
export function visible(text: string): string {
  return text.replace(unseen, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
