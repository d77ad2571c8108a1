// The files of a web page, read once. Nothing else can be requested.
import { readFile } from "node:fs/promises";

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** By the ending of the file. */
const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/**
 * `names`: files in `folder` by the path that they are served under; several, separated by spaces, are served as one.
 * Rejects when a file is missing: the program was not installed as a whole.
 */
export async function loadPageFiles(
  folder: URL,
  names: Readonly<Record<string, string>>,
): Promise<ReadonlyMap<string, PageFile>> {
  const files = Object.entries(names).map(async ([path, list]) => {
    const parts = await Promise.all(list.split(" ").map((file) => readFile(new URL(file, folder))));
    return [path, { type: types[list.slice(list.lastIndexOf(".") + 1)] ?? "", body: Buffer.concat(parts) }] as const;
  });
  return new Map(await Promise.all(files));
}
