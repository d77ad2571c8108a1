// Persists which of several addresses feeds an Input ID, since their order may differ after a restart: source → hash of
// the tag's configuration → Input ID → address.
import { createHash } from "node:crypto";
import { z } from "zod";
import type { ConfiguredSource } from "../../config/format/config.ts";
import type { InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { TagId } from "../../core/source.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { readStateFile } from "../../lib/files/state-file.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import type { AddressMemory } from "../../mapping/input-owners.ts";

const content = z.record(z.string(), z.record(z.string(), z.record(z.string(), z.string())));

/** Most Input IDs of a tag; more than an agent has. Beyond it, the least recently used one is forgotten. */
const mostInputs = 200_000;

/** Milliseconds between writes, since a first start may bind thousands of addresses. */
const writeEveryMs = 1_000;

/** Disposing it writes pending changes. */
export type BoundAddresses = Awaited<ReturnType<typeof openBoundAddresses>>;

/** An unreadable file is logged and counts as empty; addresses are then chosen again. */
export async function openBoundAddresses(path: string, { clock, log }: Pick<Runtime, "clock" | "log">) {
  const stored = await readStateFile(path, content, (error) =>
    log.warn({ err: error, path }, "cannot read which address feeds which Input ID"),
  );
  const sources = new Map(
    Object.entries(stored ?? {}).map(([source, tags]) => [
      source,
      new Map(Object.entries(tags).map(([tag, inputs]) => [tag, new Map(Object.entries(inputs))])),
    ]),
  );
  const stop = new AbortController();
  let isWritten = true;
  let writing = Promise.resolve();
  let isWriting = false;

  function changed(): void {
    isWritten = false;
    if (!isWriting) writing = write();
  }

  async function write(): Promise<void> {
    isWriting = true;
    try {
      while (!isWritten) {
        isWritten = true;
        await writeAtomically(path, JSON.stringify(plain()));
        await clock.sleep(writeEveryMs, stop.signal);
      }
    } catch (error) {
      if (isAbort(error, stop.signal)) return;
      isWritten = false;
      log.warn(
        { err: error, path: path },
        "cannot persist which address feeds which Input ID; it is chosen again after a restart",
      );
    } finally {
      isWriting = false;
    }
  }

  function plain(): z.output<typeof content> {
    return Object.fromEntries(
      [...sources]
        .filter(([, tags]) => tags.size > 0)
        .map(([source, tags]) => [
          source,
          Object.fromEntries([...tags].map(([tag, inputs]) => [tag, Object.fromEntries(inputs)])),
        ]),
    );
  }

  return {
    /** The memory of one source. Forgets tags that the source no longer has. */
    of({ name, tags, rules }: Pick<ConfiguredSource, "name" | "tags" | "rules">): AddressMemory {
      const known = sources.get(name) ?? new Map<string, Map<string, string>>();
      // Keys are computed on demand: few of up to 100,000 tags need one.
      const keys: string[] = [];
      const keyAt = (tag: number) => (keys[tag] ??= keyOf(tags[tag], rules[tag]?.input ?? ""));
      const ids = new Map(known.size === 0 ? [] : tags.keys().map((tag) => [keyAt(tag), tag as TagId]));
      const kept = new Map([...known].filter(([key]) => ids.has(key)));
      sources.set(name, kept);
      if (kept.size < known.size) changed();
      return {
        *inputs() {
          for (const [key, inputs] of kept) {
            const tag = ids.get(key);
            if (tag === undefined) continue;
            // `remember` writes Input IDs only.
            for (const [input, address] of inputs) yield { tag, input: input as InputId, address };
          }
        },
        recall: (tag, input) => {
          const inputs = kept.size === 0 ? undefined : kept.get(keyAt(tag));
          const address = inputs?.get(input);
          if (address !== undefined && inputs?.delete(input)) inputs.set(input, address);
          return address;
        },
        remember: (tag, input, address) => {
          const key = keyAt(tag);
          const inputs = kept.get(key) ?? new Map<string, string>();
          if (inputs.get(input) === address) return;
          kept.set(key, inputs.set(input, address));
          if (inputs.size > mostInputs) inputs.delete(inputs.keys().next().value ?? "");
          changed();
        },
      };
    },
    /** Forgets all sources not in `names`. */
    keepSources(names: Iterable<string>): void {
      const wanted = new Set(names);
      const gone = [...sources.keys()].filter((name) => !wanted.has(name));
      for (const name of gone) sources.delete(name);
      if (gone.length > 0) changed();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort(new Error("the agent stops"));
      await writing;
      if (!isWritten) await write();
    },
  };
}

function keyOf(tag: unknown, input: string): string {
  return createHash("sha256")
    .update(JSON.stringify([input, tag]))
    .digest("hex")
    .slice(0, 16);
}
