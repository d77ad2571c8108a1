// No payload within `maxPayload` takes much more memory than that: 28 that try, decoded in a thread that has little.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

test("payloads of 1 MiB that nest, or claim 2^31 elements, are decoded or refused within 128 MB", async () => {
  const worker = new Worker(new URL("../../../support/payload-bombs.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  // An error of the thread rejects this, one that is no PayloadError as well as memory that has run out.
  expect(await once(worker, "exit")).toEqual([0]);
});
