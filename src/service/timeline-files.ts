// The files of the timeline page.
import { loadPageFiles, type PageFile } from "../lib/page-files.ts";

const files = ["timeline.css", "timeline.js", "plot.js", "rpc.js", "signal-list.js"];

export async function loadTimelineFiles(namespace: string): Promise<ReadonlyMap<string, PageFile>> {
  const pages = await loadPageFiles(new URL("./timeline/", import.meta.url), {
    "/": "index.html",
    ...Object.fromEntries(files.map((file) => [`/timeline/${file}`, file])),
  });
  const settings = { type: "application/json", body: Buffer.from(JSON.stringify({ namespace })) };
  return new Map([...pages, ["/timeline/settings.json", settings]]);
}
