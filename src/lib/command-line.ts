// A command as a person can copy it into a shell.

/** `words` after `tagferry`; `configFile` is named where it is known. */
export function commandLine(words: readonly string[], configFile: string | undefined): string {
  return ["tagferry", ...words, ...(configFile === undefined ? [] : ["-c", configFile])].map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
