// Metadata of signals, and the catalog in which the agent stores it.
import type { InputId } from "./point.ts";

/** Attributes of a signal, in the words of the specification's signal save view. */
export interface SignalMetadata {
  readonly name: string;
  readonly type: "numeric" | "enum";
  readonly description: string;
  /** Keys match `^[A-Za-z0-9-_/]{1,128}$`. */
  readonly labels: Readonly<Record<string, readonly string[]>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly engUnit: string;
  /** Keys are integers from 0 to 9999 in text. */
  readonly enumValues: Readonly<Record<string, string>>;
  readonly sourceType: "measurement" | "aggregation" | "prediction";
  /** RFC 3339 duration. */
  readonly sampleInterval: string | null;
  /** RFC 3339 duration: a gap is drawn when there is no data for longer. */
  readonly gapDetection: string | null;
}

/** The same, with members left out where nothing is known. */
export type PartialSignalMetadata = { readonly [K in keyof SignalMetadata]?: SignalMetadata[K] | undefined };

/**
 * Persisted list of the signals that points exist for, with what is known of each. The pipeline fills it before it
 * appends, the metadata sync reads it. Losing it is harmless: it fills again as points arrive, and the service
 * creates signals for unknown inputs by itself.
 */
export interface SignalCatalog {
  /** Remembers `signal` for `input`, replacing what was known. Cheap when nothing changed; never waits for the disk. */
  describe(input: InputId, signal: PartialSignalMetadata): void;
}
