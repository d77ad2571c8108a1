// How the parts of the agent start and stop together.
import { expect, test } from "vitest";
import { openAgent } from "../../../src/agent/agent.ts";
import { openBuffer as openDiskBuffer } from "../../../src/buffer/registry.ts";
import type { Sink } from "../../../src/core/sink.ts";
import type { Source } from "../../../src/core/source.ts";
import { head, load, withPassword } from "../../support/config.ts";
import { eventually } from "../../support/eventually.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

test("the upload stops while a source takes its time to stop, not after it", async () => {
  using folder = temporaryFolder();
  const runtime = testRuntime();
  const uploadStopped = Promise.withResolvers<void>();
  const sink: Sink = {
    send: async () => ({ kind: "unavailable", cause: new Error("away") }),
    async [Symbol.asyncDispose]() {},
  };
  // The upload gives its reader back when it has stopped.
  const openBuffer: typeof openDiskBuffer = async (...parts) => {
    const buffer = await openDiskBuffer(...parts);
    const open = buffer.reader.bind(buffer);
    buffer.reader = async () => {
      const reader = await open();
      const close = reader[Symbol.asyncDispose].bind(reader);
      reader[Symbol.asyncDispose] = async () => {
        await close();
        uploadStopped.resolve();
      };
      return reader;
    };
    return buffer;
  };
  const slow: Source = {
    async *deliveries(signal) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* [];
    },
    [Symbol.asyncDispose]: () => uploadStopped.promise,
  };
  const written = await load(`${head}sources: { waves: { type: simulator, tags: [{ input: sine }] } }\n`, withPassword);
  const config = {
    ...written,
    agent: { ...written.agent, dataDir: folder.path },
    sources: written.sources.map((source) => ({ ...source, driver: { ...source.driver, open: async () => slow } })),
  };

  {
    await using agent = await openAgent(
      config,
      { version: "0", sink, openBuffer },
      runtime,
      new AbortController().signal,
    );
    await eventually(() => agent.status().sources[0]?.state === "online");
  }

  expect(runtime.lines.map(({ message }) => message)).not.toContain(
    "the source did not stop in time and is left behind",
  );
});
