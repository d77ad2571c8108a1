// The files of the pages stay small, for phones on slow connections.
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { loadPage } from "../../../src/web/answer.ts";

test("all files of all pages are at most 150 KB, compressed one by one", async () => {
  const files = await loadPage();
  const bytes = [...files.values()].reduce((sum, { body }) => sum + gzipSync(body).length, 0);
  expect(files.size).toBeGreaterThan(20);
  expect(bytes).toBeLessThanOrEqual(150_000);
});

test("the pages load nothing from elsewhere", async () => {
  for (const [path, { type, body }] of await loadPage())
    if (/html|css/.test(type))
      expect([path, /(?:src|href|url\()=?["']?(?:https?:)?\/\//.test(body.toString())]).toEqual([path, false]);
});
