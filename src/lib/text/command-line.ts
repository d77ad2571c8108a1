/** A shell command line: `tagferry`, then `words`, then `-c configFile` if it is known. */
export function commandLine(words: readonly string[], configFile: string | undefined): string {
  return ["tagferry", ...words, ...(configFile === undefined ? [] : ["-c", configFile])].map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
