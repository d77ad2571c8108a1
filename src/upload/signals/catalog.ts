// The persistent list of signals: metadata, what the service has of it, and Signal IDs.
import { setImmediate } from "node:timers/promises";
import type { InputId, SignalId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { canonicalJson, hashOf } from "./attribute-map.ts";
import { type CatalogFile, type CatalogRow, openCatalogFile, replaceCatalogFile } from "./signal-files.ts";

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

/** The catalog of the uploader. The pipeline only uses `describe`. */
export type Catalog = Awaited<ReturnType<typeof openCatalog>>;

/** Opens the list at `path`. Replaces an unreadable file; falls back to memory. Rejects with `signal.reason`. */
export async function openCatalog(path: string, runtime: Runtime, signal: AbortSignal) {
  signal.throwIfAborted();
  const rows = new Map<InputId, Known>();
  const pending = new Set<InputId>();
  const refused = new Map<InputId, string>();
  const dirty = new Set<InputId>();
  /** Caches hashes by object, since the pipeline passes the same object while nothing changes. */
  let hashes = new WeakMap<PartialSignalMetadata, string>();
  const stop = new AbortController();
  let saved = 0;
  let revision = 0;
  let file: CatalogFile = openCatalogFile(path, runtime.log);
  for (const row of file.rows()) remember(row);
  const flushing = flushForEver();

  function remember(known: Known): void {
    rows.set(known.input, known);
    if (isSaved(known)) saved++;
    else if (known.hash !== undefined) pending.add(known.input);
  }

  function change(known: Known, changed: Partial<Omit<Known, "input">>): void {
    if (isSaved(known)) saved--;
    pending.delete(known.input);
    refused.delete(known.input);
    if ("id" in changed && changed.id !== known.id) revision++;
    remember(Object.assign(known, changed));
    dirty.add(known.input);
  }

  function metadataOf({ input, metadata, hash }: Known): PartialSignalMetadata | undefined {
    if (hash === undefined) return undefined;
    try {
      const json = metadata ?? file.metadata(input);
      // May be invalid. The signal sync refuses such metadata; without them, it would wait for another description.
      return json === undefined ? undefined : (JSON.parse(json) as PartialSignalMetadata);
    } catch (error) {
      replace(error);
      return undefined;
    }
  }

  async function flushForEver(): Promise<void> {
    for (;;) {
      await runtime.clock.sleep(flushEveryMs, stop.signal, checkGridMs).catch(() => {});
      if (stop.signal.aborted) return;
      await flush();
    }
  }

  /** Writes changes in slices, so that other tasks run in between. */
  async function flush(): Promise<void> {
    while (dirty.size > 0) {
      const slice = [...dirty.values().take(rowsPerSlice)];
      try {
        const changed = slice.flatMap((input) => rows.get(input) ?? []);
        if (!file.put(changed, runtime.log)) return;
      } catch (error) {
        replace(error);
        return;
      }
      for (const input of slice) {
        dirty.delete(input);
        const known = rows.get(input);
        if (known) known.metadata = undefined;
      }
      await setImmediate();
    }
  }

  /** Replaces a failed file. Restores all but metadata, which the sources describe again. */
  function replace(cause: unknown): void {
    file = replaceCatalogFile(file, path, cause, runtime.log);
    hashes = new WeakMap();
    for (const known of Array.from(rows.values()))
      change(known, { hash: known.metadata === undefined ? undefined : known.hash });
  }

  return {
    get size(): number {
      return rows.size;
    },
    /** Inputs with metadata that the service has neither accepted nor refused. */
    pending: pending as ReadonlySet<InputId>,
    /** Changes when the result of `hasId` may change for a known signal. */
    get revision(): number {
      return revision;
    },
    get savedCount(): number {
      return saved;
    },
    /** Inputs whose metadata was refused since the start, with the reason. */
    refused: refused as ReadonlyMap<InputId, string>,
    describe(input: InputId, signal: PartialSignalMetadata): void {
      const known = rows.get(input);
      const before = hashes.get(signal);
      if (known && before !== undefined && known.hash === before) return;
      const metadata = canonicalJson(signal);
      const now = before ?? hashOf(metadata);
      hashes.set(signal, now);
      if (known?.hash === now) return;
      change(known ?? newRow(input), { metadata, hash: now });
    },
    entry(input: InputId): CatalogEntry | undefined {
      const known = rows.get(input);
      return known && { input, signal: metadataOf(known), hash: known.hash, saved: isSaved(known), id: known.id };
    },
    /** All signals, in no particular order. */
    inputs: (): Iterable<InputId> => rows.keys(),
    /** Sets the service and integration of the list. For a new target, all metadata counts as unsaved. */
    bind(target: string): void {
      try {
        if (file.target === target) return;
        file.target = target;
      } catch (error) {
        replace(error);
      }
      for (const known of Array.from(rows.values())) change(known, { saved: undefined, id: undefined });
    },
    /** The service has the metadata with `savedHash`. Undefined: it does not, so ours must be saved again. */
    markSaved(input: InputId, savedHash: string | undefined, id: SignalId | undefined): void {
      const known = rows.get(input);
      if (!known) return;
      change(known, { saved: savedHash, id: id ?? known.id });
    },
    /** The service refused the metadata with `refusedHash`. */
    markRefused(input: InputId, refusedHash: string, reason: string): void {
      if (rows.get(input)?.hash !== refusedHash) return;
      pending.delete(input);
      refused.set(input, reason);
    },
    /** Whether the service has named a signal of `input`. */
    isSignal: (input: InputId): boolean => rows.get(input)?.id !== undefined,
    /** Whether `id` is the known signal of `input`. */
    hasId: (input: InputId, id: SignalId): boolean => rows.get(input)?.id === id,
    /** Stores the Signal ID of `input`. Cheap if known. */
    learn(input: InputId, id: SignalId): void {
      const known = rows.get(input);
      if (known?.id === id) return;
      revision++;
      if (known) known.id = id;
      else remember({ ...newRow(input), id });
      dirty.add(input);
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stop.abort(new Error("the catalog is closed"));
      await flushing.then(flush);
      file[Symbol.dispose]();
    },
  };
}

function newRow(input: InputId): Known {
  return { input, metadata: undefined, hash: undefined, saved: undefined, id: undefined };
}

function isSaved({ hash: now, saved }: Known): boolean {
  return now !== undefined && saved === now;
}
