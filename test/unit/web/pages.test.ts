// The files of the pages: one frame around each, and small, for phones on slow connections.
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { loadPages } from "../../../src/web/pages.ts";

test("all files of all pages are at most 150 KB, compressed one by one", async () => {
  const files = await loadPages();
  const bytes = [...files.values()].reduce((sum, { body }) => sum + gzipSync(body).length, 0);
  expect(files.size).toBeGreaterThan(20);
  expect(bytes).toBeLessThanOrEqual(150_000);
});

test("the pages load nothing from elsewhere", async () => {
  for (const [path, { type, body }] of await loadPages())
    if (/html|css/.test(type))
      expect([path, /(?:src|href|url\()=?["']?(?:https?:)?\/\//.test(body.toString())]).toEqual([path, false]);
});

test("each page links to the others and marks itself, and no placeholder of the frame is left", async () => {
  for (const [path, { type, body }] of await loadPages()) {
    if (!type.startsWith("text/html")) continue;
    const html = body.toString();
    expect([path, html.match(/\{(?:title|loads|links|main)\}/g)]).toEqual([path, null]);
    const links = [...html.matchAll(/<a href="\.(\/[a-z]*)"( aria-current="page")?>/g)];
    expect(links.map(([, to]) => to)).toEqual(expect.arrayContaining(["/", "/delivery"]));
    const own = links.filter(([, , current]) => current).map(([, to]) => to);
    expect([path, own]).toEqual([path, path === "/tag" ? [] : [path]]);
  }
});
