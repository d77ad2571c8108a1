// The files of the status page.
import { loadPageFiles, type PageFile } from "../lib/page-files.ts";

/** Script modules lie side by side in `page/`. */
const scripts = "page element format panels plot certificates figures gaps lookup refused sources tag-table".split(" ");

export function loadPage(): Promise<ReadonlyMap<string, PageFile>> {
  return loadPageFiles(new URL("./page/", import.meta.url), {
    "/": "index.html",
    // One file, since nothing is painted before the last style has arrived.
    "/page.css": "page.css panels.css tables.css lists.css",
    "/icon.svg": "icon.svg",
    ...Object.fromEntries(scripts.map((name) => [`/${name}.js`, `${name}.js`])),
  });
}
