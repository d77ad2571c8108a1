// The files of the status page, and HTTP responses with security headers.
import type { ServerResponse } from "node:http";
import { words } from "../agent/status/words.ts";
import { loadPageFiles, loadPlotFiles, type PageFile } from "../lib/page-files.ts";

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
  // For HEAD, Node omits the body.
  response.end(body);
}

export function start(response: ServerResponse, status: number, type: string): void {
  response.writeHead(status, { ...headers, "content-type": type });
}

/** Paths of the pages. */
const pages = { "/": "index.html", "/delivery": "delivery.html", "/tag": "tag.html" };

/** Script modules in `page/`. */
const scripts =
  "page delivery element format headline stream certificates cluster figures gaps refused signals sources tag-table chart token tag".split(
    " ",
  );

export async function loadPage(): Promise<ReadonlyMap<string, PageFile>> {
  const files = await loadPageFiles(new URL("./page/", import.meta.url), {
    ...pages,
    // One file, since browsers paint only after the last style sheet has arrived.
    "/page.css": "page.css headline.css panels.css tables.css lists.css",
    "/icon.svg": "icon.svg",
    ...Object.fromEntries(scripts.map((name) => [`/${name}.js`, `${name}.js`])),
  });
  return new Map([...files, ...(await loadPlotFiles("/", import.meta.url)), ["/words.js", wordsScript]]);
}

/** The words for states, as a module of the page. */
const wordsScript: PageFile = {
  type: "text/javascript; charset=utf-8",
  body: Buffer.from(`export const words = ${JSON.stringify(words)};\n`),
};
