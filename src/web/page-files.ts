// The files of the status page, read once. Nothing but these can be asked for.
import { readFile } from "node:fs/promises";

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
}

/**
 * By the path they are asked under; several files are sent as one, since nothing is painted before the last style has
 * come. Script modules lie side by side in `page/`.
 */
const names: Readonly<Record<string, readonly [files: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/page.css": ["page.css panels.css tables.css lists.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
  "/page.js": ["page.js", "text/javascript; charset=utf-8"],
  "/element.js": ["element.js", "text/javascript; charset=utf-8"],
  "/format.js": ["format.js", "text/javascript; charset=utf-8"],
  "/panels.js": ["panels.js", "text/javascript; charset=utf-8"],
  "/plot.js": ["plot.js", "text/javascript; charset=utf-8"],
  "/certificates.js": ["certificates.js", "text/javascript; charset=utf-8"],
  "/figures.js": ["figures.js", "text/javascript; charset=utf-8"],
  "/gaps.js": ["gaps.js", "text/javascript; charset=utf-8"],
  "/lookup.js": ["lookup.js", "text/javascript; charset=utf-8"],
  "/refused.js": ["refused.js", "text/javascript; charset=utf-8"],
  "/sources.js": ["sources.js", "text/javascript; charset=utf-8"],
  "/tag-table.js": ["tag-table.js", "text/javascript; charset=utf-8"],
};

/** Rejects when a file is missing: the program was not installed as a whole. */
export async function loadPage(): Promise<ReadonlyMap<string, PageFile>> {
  const folder = new URL("./page/", import.meta.url);
  return new Map(
    await Promise.all(
      Object.entries(names).map(async ([path, [files, type]]) => {
        const parts = files.split(" ").map((file) => readFile(new URL(file, folder)));
        return [path, { type, body: Buffer.concat(await Promise.all(parts)) }] as const;
      }),
    ),
  );
}
