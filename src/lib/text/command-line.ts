import { shellWord } from "../../core/errors.ts";

/** A command line for the shell of `platform`: `tagferry`, then `words`, then `-c configFile` if it is known. */
export function commandLine(
  words: readonly string[],
  configFile: string | undefined,
  platform: NodeJS.Platform = process.platform,
): string {
  const all = ["tagferry", ...words, ...(configFile === undefined ? [] : ["-c", configFile])];
  return all.map((word) => shellWord(word, platform)).join(" ");
}
