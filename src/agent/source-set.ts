// The sources of an agent, and changes to them while the others keep running.
import { type ConfiguredSource, type SourceChanges, sourceChanges } from "../config/format/config.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Source } from "../core/source.ts";
import { type RunningSource, type SourceParts, startSource } from "./running-source.ts";

/** Initially empty; `change` sets the sources. Owns every started source, even if starting another one fails. */
export class SourceSet implements AsyncDisposable {
  readonly #parts: SourceParts;
  readonly #runtime: Runtime;
  #running: readonly RunningSource[] = [];
  /** Serialises changes. There are none after disposal. */
  #busy: Promise<unknown> = Promise.resolve();
  #ended = false;

  constructor(parts: SourceParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
  }

  /** In the order of the configuration. */
  get running(): readonly RunningSource[] {
    return this.#running;
  }

  /** The live connections of the sources of this type. */
  connections(type: string): readonly Source[] {
    return this.#running.flatMap(({ configured, monitor }) =>
      configured.driver.type === type && monitor.connection ? [monitor.connection] : [],
    );
  }

  /** Starts new sources, restarts changed ones and stops removed ones, then resolves. Unchanged sources keep running. */
  change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    const changing = this.#busy.then(() => this.#change(sources));
    this.#busy = changing.catch(() => {});
    return changing;
  }

  async #change(sources: readonly ConfiguredSource[]): Promise<SourceChanges> {
    if (this.#ended) return { started: [], restarted: [], stopped: [], unchanged: [] };
    const changes = sourceChanges(
      this.#running.map(({ configured }) => configured),
      sources,
    );
    const unchanged = new Set(changes.unchanged);
    const kept = this.#running.filter(({ configured }) => unchanged.has(configured.name));
    const ended = this.#running.filter((source) => !kept.includes(source));
    this.#running = kept;
    for (const source of ended)
      if (!sources.some((next) => next.name === source.configured.name && sameIdentity(next, source.configured)))
        source.retire();
    // Removed sources release their Input IDs before new ones claim them.
    await Promise.all(ended.map((source) => source[Symbol.asyncDispose]()));
    for (const source of sources) {
      if (unchanged.has(source.name)) continue;
      // Added one by one, so that started sources are disposed even if starting the next one throws.
      this.#running = [...this.#running, startSource(source, this.#parts, this.#runtime)];
    }
    const names = sources.map(({ name }) => name);
    const place = ({ configured }: RunningSource) => names.indexOf(configured.name);
    this.#running = this.#running.toSorted((a, b) => place(a) - place(b));
    return changes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    await this.#busy;
    await Promise.all(this.#running.map((source) => source[Symbol.asyncDispose]()));
  }
}

/** Whether both use the same identity at the device, and so the state that the device keeps for it. */
function sameIdentity(a: ConfiguredSource, b: ConfiguredSource): boolean {
  return a.driver.type === b.driver.type && a.driver.identity?.(a.options) === b.driver.identity?.(b.options);
}
