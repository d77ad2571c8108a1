// The files of a web page, read once at startup. No other file is served.
import { readFile } from "node:fs/promises";

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/** File extension → content type. */
const types: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/**
 * `names`: path of a request → file in `folder`. Several files, separated by spaces, are served as one. Rejects if a
 * file is missing, since the installation is then incomplete.
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

const plotFiles = ["uPlot.iife.min.js", "uPlot.min.css"];

/**
 * The plotting library under `prefix`, for pages. `from`: URL of the calling module in a folder of `src`. In a release
 * the files are in the folder `timeline` of the bundle.
 */
export function loadPlotFiles(prefix: string, from: string): Promise<ReadonlyMap<string, PageFile>> {
  const folder = new URL(from.endsWith(".ts") ? "../../node_modules/uplot/dist/" : "./timeline/", from);
  return loadPageFiles(folder, Object.fromEntries(plotFiles.map((file) => [`${prefix}${file}`, file])));
}
