// A full disk: the uploader postpones what it has to write, and no point is lost.
import { readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { InputId } from "../../src/core/point.ts";
import { openCatalog } from "../../src/upload/signals/catalog.ts";
import { eventually } from "../support/eventually.ts";
import { canCutPower, loopVolume } from "../support/loop-volume.ts";
import { testRuntime } from "../support/runtime.ts";
import { accepts, fails, ScriptedService } from "../support/scripted-service.ts";
import { uploading } from "../support/uploading.ts";

/** Fills the disk. Call the returned function to free the space. */
function fill(path: string): () => void {
  const file = join(path, "filler");
  for (const chunk of [2 ** 20, 4_096, 1]) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(chunk), { flag: "a" });
    } catch {
      // The disk is full.
    }
  }
  expect(statfsSync(path).bavail).toBeLessThan(10);
  return () => rmSync(file);
}

test.runIf(canCutPower)(
  "refused points and the list of signals wait for disk space, and no file is set aside",
  async () => {
    using volume = loopVolume("ext4", 20 * 2 ** 20);
    await using service = await ScriptedService.open();
    service.otherwise = (exchange) => {
      const values = Object.values(exchange.request.params.data?.series ?? {}).flat();
      return (values.includes(13) ? fails(-32602) : accepts)(exchange);
    };
    const upload = await uploading({ url: service.url, speed: 200, folder: volume.path });
    upload.catalog.describe("before" as InputId, { engUnit: "V" });
    await eventually(() => upload.catalog.pending.size === 0);
    const empty = fill(volume.path);
    for (let i = 0; i < 2_000; i++) upload.catalog.describe(`tag${i}` as InputId, { description: "x".repeat(500) });
    upload.reader.append({
      a: [
        [1e15, 1],
        [1e15 + 1, 13],
        [1e15 + 2, 3],
      ],
    });
    const warned = (message: string) => upload.runtime.lines.some((line) => line.message === message);
    await eventually(() => upload.uploader.status().unkept === 1, 30_000);
    await eventually(() => warned("the list of signals cannot be written for now"), 30_000);
    expect(upload.reader.empty).toBe(false);
    expect(readdirSync(volume.path).some((name) => name.includes("damaged"))).toBe(false);
    empty();
    await eventually(() => upload.reader.empty, 30_000);
    expect(readFileSync(join(volume.path, "upload/rejects.ndjson"), "utf8").trim().split("\n").length).toBe(1);
    await upload.stop();
    await using catalog = await openCatalog(
      join(volume.path, "signals.db"),
      testRuntime(),
      new AbortController().signal,
    );
    expect(catalog.size).toBe(2_002);
    expect(JSON.stringify(upload.runtime.lines)).not.toContain("    at ");
  },
);
