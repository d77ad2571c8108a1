// The persistent list of signals: metadata, what the service has of it, and Signal IDs.
import { setImmediate } from "node:timers/promises";
import type { InputId, SignalId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import type { PartialSignalMetadata, SignalCatalog } from "../../core/signal.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import { canonicalJson, hashOf } from "./attribute-map.ts";
import { type CatalogFile, type CatalogRow, openCatalogFile, replaceCatalogFile } from "./catalog-file.ts";

export interface CatalogEntry extends Pick<CatalogRow, "input" | "hash" | "id"> {
  /** The last description. Undefined: points exist, but no metadata. */
  readonly signal: PartialSignalMetadata | undefined;
  readonly saved: boolean;
}

/** Longest delay of a write in milliseconds. Lost changes are harmless, and flash memory wears. */
const flushEveryMs = 5_000;
const rowsPerSlice = 2_000;

/** `metadata` is only set until it is written to the file. */
type Known = { -readonly [Key in keyof CatalogRow]: CatalogRow[Key] };

/** Opens the list at `path`. Replaces an unreadable file; falls back to memory. Rejects with `signal.reason`. */
export async function openCatalog(path: string, runtime: Runtime, signal: AbortSignal): Promise<Catalog> {
  signal.throwIfAborted();
  return new Catalog(path, runtime);
}

/** The catalog of the uploader. The pipeline only uses `describe`. */
export class Catalog implements SignalCatalog, AsyncDisposable {
  readonly #path: string;
  readonly #runtime: Runtime;
  readonly #known = new Map<InputId, Known>();
  readonly #pending = new Set<InputId>();
  readonly #refused = new Map<InputId, string>();
  readonly #dirty = new Set<InputId>();
  /** Caches hashes by object, since the pipeline passes the same object while nothing changes. */
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

  get size(): number {
    return this.#known.size;
  }

  /** Inputs with metadata that the service has neither accepted nor refused. */
  get pending(): ReadonlySet<InputId> {
    return this.#pending;
  }

  /** Changes when the result of `hasId` may change for a known signal. */
  get revision(): number {
    return this.#revision;
  }

  get savedCount(): number {
    return this.#savedCount;
  }

  /** Inputs whose metadata was refused since the start, with the reason. */
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

  /** All signals, in no particular order. */
  inputs(): Iterable<InputId> {
    return this.#known.keys();
  }

  /** Sets the service and integration of the list. For a new target, all metadata counts as unsaved. */
  bind(target: string): void {
    try {
      if (this.#file.target === target) return;
      this.#file.target = target;
    } catch (error) {
      this.#replace(error);
    }
    for (const known of Array.from(this.#known.values())) this.#change(known, { saved: undefined, id: undefined });
  }

  /** The service has the metadata with `savedHash`. Undefined: it does not, so ours must be saved again. */
  markSaved(input: InputId, savedHash: string | undefined, id: SignalId | undefined): void {
    const known = this.#known.get(input);
    if (!known) return;
    this.#change(known, { saved: savedHash, id: id ?? known.id });
  }

  /** The service refused the metadata with `refusedHash`. */
  markRefused(input: InputId, refusedHash: string, reason: string): void {
    if (this.#known.get(input)?.hash !== refusedHash) return;
    this.#pending.delete(input);
    this.#refused.set(input, reason);
  }

  /** Whether `id` is the known signal of `input`. */
  hasId(input: InputId, id: SignalId): boolean {
    return this.#known.get(input)?.id === id;
  }

  /** Stores the Signal ID of `input`. Cheap if known. */
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

  /** Writes changes in slices, so that other tasks run in between. */
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

  /** Replaces a failed file. Restores all but metadata, which the sources describe again. */
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
