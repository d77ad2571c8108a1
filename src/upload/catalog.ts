// The persisted list of signals: what is known of each, what the service was last told, and the ID it gave.
import type { InputId, SignalId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { PartialSignalMetadata, SignalCatalog } from "../core/signal.ts";

/** What is known of one signal. */
export interface CatalogEntry {
  readonly input: InputId;
  /** As described last; undefined: points exist, but nothing was said about them. */
  readonly signal: PartialSignalMetadata | undefined;
  /** Whether the service has this metadata. */
  readonly saved: boolean;
  /** Why the service would not take this metadata; undefined: it did, or was not asked. */
  readonly refused: string | undefined;
  /** ID the service gave; undefined: not known yet. */
  readonly id: SignalId | undefined;
}

/** The catalog as the uploader uses it; the pipeline needs no more of it than `describe`. */
export interface Catalog extends SignalCatalog, AsyncDisposable {
  /** Number of signals known. */
  readonly size: number;
  entry(input: InputId): CatalogEntry | undefined;
  /** All signals, in no order. */
  entries(): Iterable<CatalogEntry>;
}

/**
 * Opens the list kept at `path`. Resolves once it is read. A file that cannot be read is set aside with a warning and an
 * empty list begun; where nothing can be written the list is kept in memory alone. Rejects with `signal.reason` only.
 */
export declare function openCatalog(path: string, runtime: Runtime, signal: AbortSignal): Promise<Catalog>;
