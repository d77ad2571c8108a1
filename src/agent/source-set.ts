// The sources of an agent, and how a new configuration changes them while the others go on.
import type { ConfiguredSource } from "../config/config.ts";
import { sameSource } from "../config/same-source.ts";
import type { Runtime } from "../core/runtime.ts";
import { type RunningSource, type SourceParts, startSource } from "./running-source.ts";

/** Names of the sources that a change concerned. */
export interface SourceChanges {
  readonly started: readonly string[];
  readonly restarted: readonly string[];
  readonly stopped: readonly string[];
}

export class SourceSet implements AsyncDisposable {
  readonly #parts: SourceParts;
  readonly #runtime: Runtime;
  #running: readonly RunningSource[];
  /** One change at a time, and none after the end. */
  #busy: Promise<unknown> = Promise.resolve();
  #ended = false;

  constructor(sources: readonly ConfiguredSource[], parts: SourceParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
    this.#running = sources.map((source) => startSource(source, parts, runtime));
  }

  /** In the order of the configuration. */
  get running(): readonly RunningSource[] {
    return this.#running;
  }

  /** Resolves when what is new or changed was started anew and what is gone has stopped; the others never notice. */
  change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    const changing = this.#busy.then(() => this.#change(sources));
    this.#busy = changing.catch(() => {});
    return changing;
  }

  async #change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    if (this.#ended) return { started: [], restarted: [], stopped: [] };
    const kept = this.#running.filter(({ configured: before }) =>
      sources.some((source) => source.name === before.name && sameSource(source, before)),
    );
    const ended = this.#running.filter((source) => !kept.includes(source));
    // What ends gives its Input IDs back before anything new claims them.
    await Promise.all(ended.map((source) => source[Symbol.asyncDispose]()));
    const before = new Set(ended.map(({ configured }) => configured.name));
    const started: string[] = [];
    this.#running = sources.map((source) => {
      const running = kept.find(({ configured }) => configured.name === source.name);
      if (running) return running;
      started.push(source.name);
      return startSource(source, this.#parts, this.#runtime);
    });
    return {
      started: started.filter((name) => !before.has(name)),
      restarted: started.filter((name) => before.has(name)),
      stopped: [...before].filter((name) => !started.includes(name)),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#busy;
    await Promise.all(this.#running.map((source) => source[Symbol.asyncDispose]()));
  }
}
