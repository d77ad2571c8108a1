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
export class BoundAddresses implements AsyncDisposable {
  readonly #path: string;
  readonly #runtime: Pick<Runtime, "clock" | "log">;
  readonly #sources: Map<string, Map<string, Map<string, string>>>;
  readonly #stop = new AbortController();
  #isWritten = true;
  #writing = Promise.resolve();
  #isWriting = false;

  private constructor(path: string, sources: z.output<typeof content>, runtime: Pick<Runtime, "clock" | "log">) {
    this.#path = path;
    this.#runtime = runtime;
    this.#sources = new Map(
      Object.entries(sources).map(([source, tags]) => [
        source,
        new Map(Object.entries(tags).map(([tag, inputs]) => [tag, new Map(Object.entries(inputs))])),
      ]),
    );
  }

  /** An unreadable file is logged and counts as empty; addresses are then chosen again. */
  static async open(path: string, runtime: Pick<Runtime, "clock" | "log">): Promise<BoundAddresses> {
    const stored = await readStateFile(path, content, (error) =>
      runtime.log.warn({ err: error, path }, "cannot read which address feeds which Input ID"),
    );
    return new BoundAddresses(path, stored ?? {}, runtime);
  }

  /** The memory of one source. Forgets tags that the source no longer has. */
  of({ name, tags, rules }: Pick<ConfiguredSource, "name" | "tags" | "rules">): AddressMemory {
    const known = this.#sources.get(name) ?? new Map<string, Map<string, string>>();
    // Keys are computed on demand: few of up to 100,000 tags need one.
    const keys: string[] = [];
    const keyAt = (tag: number) => (keys[tag] ??= keyOf(tags[tag], rules[tag]?.input ?? ""));
    const ids = new Map(known.size === 0 ? [] : tags.keys().map((tag) => [keyAt(tag), tag as TagId]));
    const kept = new Map([...known].filter(([key]) => ids.has(key)));
    this.#sources.set(name, kept);
    if (kept.size < known.size) this.#changed();
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
        this.#changed();
      },
    };
  }

  /** Forgets all sources not in `names`. */
  keepSources(names: Iterable<string>): void {
    const wanted = new Set(names);
    const gone = [...this.#sources.keys()].filter((name) => !wanted.has(name));
    for (const name of gone) this.#sources.delete(name);
    if (gone.length > 0) this.#changed();
  }

  #changed(): void {
    this.#isWritten = false;
    if (!this.#isWriting) this.#writing = this.#write();
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    try {
      while (!this.#isWritten) {
        this.#isWritten = true;
        await writeAtomically(this.#path, JSON.stringify(this.#plain()));
        await this.#runtime.clock.sleep(writeEveryMs, this.#stop.signal);
      }
    } catch (error) {
      if (isAbort(error, this.#stop.signal)) return;
      this.#isWritten = false;
      this.#runtime.log.warn(
        { err: error, path: this.#path },
        "cannot persist which address feeds which Input ID; it is chosen again after a restart",
      );
    } finally {
      this.#isWriting = false;
    }
  }

  #plain(): z.output<typeof content> {
    return Object.fromEntries(
      [...this.#sources]
        .filter(([, tags]) => tags.size > 0)
        .map(([source, tags]) => [
          source,
          Object.fromEntries([...tags].map(([tag, inputs]) => [tag, Object.fromEntries(inputs)])),
        ]),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("the agent stops"));
    await this.#writing;
    if (!this.#isWritten) await this.#write();
  }
}

function keyOf(tag: unknown, input: string): string {
  return createHash("sha256")
    .update(JSON.stringify([input, tag]))
    .digest("hex")
    .slice(0, 16);
}
