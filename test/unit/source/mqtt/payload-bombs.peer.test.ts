// No payload within `maxPayload` takes much more memory than that. Decodes 31 hostile ones in a thread with little
// memory.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

test("payloads of 1 MiB that nest, or claim 2^31 elements, are decoded or refused within 128 MB", async () => {
  const worker = new Worker(new URL("../../../support/payload-bombs.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  // Rejects if the thread fails, with an error that is not a PayloadError or because it runs out of memory.
  expect(await once(worker, "exit")).toEqual([0]);
});
