// The persisted list of signals: what is known of each, what the service was last told, and the ID it gave.
import { setImmediate } from "node:timers/promises";
import type { InputId, SignalId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import type { PartialSignalMetadata, SignalCatalog } from "../../core/signal.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import { canonicalJson, hashOf } from "./attribute-map.ts";
import { type CatalogFile, type CatalogRow, openCatalogFile, replaceCatalogFile } from "./catalog-file.ts";

/** What is known of one signal. */
export interface CatalogEntry {
  readonly input: InputId;
  /** As described last; undefined: points exist, but nothing was said about them. */
  readonly signal: PartialSignalMetadata | undefined;
  /** Names the metadata as they are now; changes when they do. */
  readonly hash: string | undefined;
  /** Whether the service has this metadata. */
  readonly saved: boolean;
  /** ID the service gave; undefined: not known yet. */
  readonly id: SignalId | undefined;
}

/** How long changes may wait to be written, in milliseconds: they are cheap to lose, and flash wears. */
const flushEveryMs = 5_000;
const rowsPerSlice = 2_000;

/** With `metadata` while they wait to be written; afterwards the file has them. */
type Known = { -readonly [Key in keyof CatalogRow]: CatalogRow[Key] };

/**
 * Opens the list kept at `path`. Resolves once it is read. A file that cannot be read is set aside with a warning and an
 * empty list begun; where nothing can be written the list is kept in memory alone. Rejects with `signal.reason` only.
 */
export async function openCatalog(path: string, runtime: Runtime, signal: AbortSignal): Promise<Catalog> {
  signal.throwIfAborted();
  return new Catalog(path, runtime);
}

/** The catalog as the uploader uses it; the pipeline needs no more of it than `describe`. */
export class Catalog implements SignalCatalog, AsyncDisposable {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #known = new Map<InputId, Known>();
  readonly #pending = new Set<InputId>();
  readonly #refused = new Map<InputId, string>();
  readonly #dirty = new Set<InputId>();
  /** Hash of metadata objects seen before: the pipeline gives the same object again while nothing changes. */
  #hashes = new WeakMap<PartialSignalMetadata, string>();
  readonly #stop = new AbortController();
  readonly #flushing: Promise<void>;
  #file: CatalogFile;
  #savedCount = 0;
  #revision = 0;

  constructor(path: string, runtime: Runtime) {
    this.#path = path;
    this.#runtime = runtime;
    this.#file = openCatalogFile(path, runtime.log);
    for (const row of this.#file.rows()) this.#remember(row);
    this.#flushing = this.#flushForEver();
  }

  /** Number of signals known. */
  get size(): number {
    return this.#known.size;
  }

  /** Inputs whose metadata the service has not, and has not refused. */
  get pending(): ReadonlySet<InputId> {
    return this.#pending;
  }

  /** Changes when `hasId` may answer differently for an input whose signal it knew. */
  get revision(): number {
    return this.#revision;
  }

  get savedCount(): number {
    return this.#savedCount;
  }

  /** Inputs whose metadata the service refused since the start, with its reason. */
  get refused(): ReadonlyMap<InputId, string> {
    return this.#refused;
  }

  describe(input: InputId, signal: PartialSignalMetadata): void {
    const known = this.#known.get(input);
    const before = this.#hashes.get(signal);
    if (known && before !== undefined && known.hash === before) return;
    const metadata = canonicalJson(signal);
    const now = before ?? hashOf(metadata);
    this.#hashes.set(signal, now);
    if (known?.hash === now) return;
    this.#change(known ?? newRow(input), { metadata, hash: now });
  }

  entry(input: InputId): CatalogEntry | undefined {
    const known = this.#known.get(input);
    return known && { input, signal: this.#metadata(known), hash: known.hash, saved: isSaved(known), id: known.id };
  }

  /** All signals, in no order. */
  inputs(): Iterable<InputId> {
    return this.#known.keys();
  }

  /** Names the service and integration that the list is about. A new target has received no metadata yet. */
  bind(target: string): void {
    try {
      if (this.#file.target === target) return;
      this.#file.target = target;
    } catch (error) {
      this.#replace(error);
    }
    for (const known of Array.from(this.#known.values())) this.#change(known, { saved: undefined, id: undefined });
  }

  /** The service has the metadata that `savedHash` names; undefined: it has none any longer, or others, and is to get ours again. */
  markSaved(input: InputId, savedHash: string | undefined, id: SignalId | undefined): void {
    const known = this.#known.get(input);
    if (!known) return;
    this.#change(known, { saved: savedHash, id: id ?? known.id });
  }

  /** The service would not take the metadata that `refusedHash` names. */
  markRefused(input: InputId, refusedHash: string, reason: string): void {
    if (this.#known.get(input)?.hash !== refusedHash) return;
    this.#pending.delete(input);
    this.#refused.set(input, reason);
  }

  /** Whether the signal of `input` is known to be this one. */
  hasId(input: InputId, id: SignalId): boolean {
    return this.#known.get(input)?.id === id;
  }

  /** The service named the signal of `input`. Cheap when it was known. */
  learn(input: InputId, id: SignalId): void {
    const known = this.#known.get(input);
    if (known?.id === id) return;
    this.#revision++;
    if (known) known.id = id;
    else this.#remember({ ...newRow(input), id });
    this.#dirty.add(input);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("the catalog is closed"));
    await this.#flushing.then(() => this.#flush());
    this.#file[Symbol.dispose]();
  }

  #remember(known: Known): void {
    this.#known.set(known.input, known);
    if (isSaved(known)) this.#savedCount++;
    else if (known.hash !== undefined) this.#pending.add(known.input);
  }

  #change(known: Known, changed: Partial<Omit<Known, "input">>): void {
    if (isSaved(known)) this.#savedCount--;
    this.#pending.delete(known.input);
    this.#refused.delete(known.input);
    if ("id" in changed && changed.id !== known.id) this.#revision++;
    this.#remember(Object.assign(known, changed));
    this.#dirty.add(known.input);
  }

  #metadata({ input, metadata, hash }: Known): PartialSignalMetadata | undefined {
    if (hash === undefined) return undefined;
    try {
      const json = metadata ?? this.#file.metadata(input);
      const parsed = signalAttributes.safeParse(json === undefined ? undefined : JSON.parse(json));
      return parsed.success ? parsed.data : undefined;
    } catch (error) {
      this.#replace(error);
      return undefined;
    }
  }

  async #flushForEver(): Promise<void> {
    const { signal } = this.#stop;
    for (;;) {
      await this.#runtime.clock.sleep(flushEveryMs, signal, checkGridMs).catch(() => {});
      if (signal.aborted) return;
      await this.#flush();
    }
  }

  /** Writes what changed, in slices, so that others run in between. */
  async #flush(): Promise<void> {
    while (this.#dirty.size > 0) {
      const slice = [...this.#dirty.values().take(rowsPerSlice)];
      try {
        const rows = slice.flatMap((input) => this.#known.get(input) ?? []);
        if (!this.#file.put(rows, this.#runtime.log)) return;
      } catch (error) {
        this.#replace(error);
        return;
      }
      for (const input of slice) {
        this.#dirty.delete(input);
        const known = this.#known.get(input);
        if (known) known.metadata = undefined;
      }
      await setImmediate();
    }
  }

  /** Replaces a file that failed in use by a new one with everything but the metadata, which the sources describe again. */
  #replace(cause: unknown): void {
    this.#file = replaceCatalogFile(this.#file, this.#path, cause, this.#runtime.log);
    this.#hashes = new WeakMap();
    for (const known of Array.from(this.#known.values()))
      this.#change(known, { hash: known.metadata === undefined ? undefined : known.hash });
  }
}

function newRow(input: InputId): Known {
  return { input, metadata: undefined, hash: undefined, saved: undefined, id: undefined };
}

function isSaved({ hash: now, saved }: Known): boolean {
  return now !== undefined && saved === now;
}
