// The files of the status page, and answers over HTTP, each with the headers that keep a browser from doing more with it than showing it.
import type { ServerResponse } from "node:http";
import { loadPageFiles, type PageFile } from "../lib/page-files.ts";

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-store",
};

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  end(response, status, "application/json; charset=utf-8", JSON.stringify(body));
}

export function end(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.setHeader("content-length", Buffer.byteLength(body));
  start(response, status, type);
  // Node leaves the body out of an answer to HEAD by itself.
  response.end(body);
}

export function start(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { ...headers, "content-type": type });
}

/** Script modules lie side by side in `page/`. */
const scripts = "page element format panels plot certificates figures gaps refused sources tag-table".split(" ");

export function loadPage(): Promise<ReadonlyMap<string, PageFile>> {
  return loadPageFiles(new URL("./page/", import.meta.url), {
    "/": "index.html",
    // One file, since nothing is painted before the last style has arrived.
    "/page.css": "page.css panels.css tables.css lists.css",
    "/icon.svg": "icon.svg",
    ...Object.fromEntries(scripts.map((name) => [`/${name}.js`, `${name}.js`])),
  });
}
