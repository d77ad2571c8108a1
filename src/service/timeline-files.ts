// The files of the timeline page, read once. Nothing but these can be asked for.
import { readFile } from "node:fs/promises";

export interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
}

const script = "text/javascript; charset=utf-8";
/** By the path they are asked under. */
const names: Readonly<Record<string, readonly [file: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/timeline/timeline.css": ["timeline.css", "text/css; charset=utf-8"],
  "/timeline/timeline.js": ["timeline.js", script],
  "/timeline/plot.js": ["plot.js", script],
  "/timeline/rpc.js": ["rpc.js", script],
  "/timeline/signal-list.js": ["signal-list.js", script],
};

/** Rejects when a file is missing: the program was not installed as a whole. */
export async function loadTimelineFiles(namespace: string): Promise<ReadonlyMap<string, PageFile>> {
  const folder = new URL("./timeline/", import.meta.url);
  const files = Object.entries(names).map(
    async ([path, [file, type]]) => [path, { type, body: await readFile(new URL(file, folder)) }] as const,
  );
  const settings = { type: "application/json", body: new TextEncoder().encode(JSON.stringify({ namespace })) };
  return new Map([...(await Promise.all(files)), ["/timeline/settings.json", settings]]);
}
