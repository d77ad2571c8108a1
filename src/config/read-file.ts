// Files that a configuration is made of: read as UTF-8 text, or an issue where they cannot be.
import { resolve } from "node:path";
import type { Environment } from "./environment.ts";
import type { Issues, Place } from "./issue.ts";

/** The text of `file` (relative to `cwd`), or undefined; then `issues` says why, at `place`. */
export async function readTextFile(
  file: string,
  place: Place,
  environment: Environment,
  issues: Issues,
): Promise<string | undefined> {
  // A position in the file itself names it already.
  const what = place.at.file === file ? "" : `${file} `;
  let bytes: Uint8Array;
  try {
    bytes = await environment.readFile(resolve(environment.cwd, file));
  } catch (error) {
    const wanted = what === "" ? "name it with -c FILE, or write one with `tagferry init`" : undefined;
    issues.error(place, `${what}cannot be read: ${fileProblem(error)}`, wanted);
    return undefined;
  }
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    issues.read(file, text);
    return text;
  } catch {
    issues.error(place, `${what}is no UTF-8 text`, "save it as UTF-8");
    return undefined;
  }
}

/** What the operating system said, for people. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
    case "EPERM":
      return "no permission";
    case "EISDIR":
      return "it is a folder";
    case "ENOTDIR":
      return "a part of its path is no folder";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
