// Conversion of readings to points: finds the input of each reading and applies the rules of its tag.

import type { EpochMicros, InputId, Point, PointBatch } from "../core/point.ts";
import type { Reading, ReadingBatch, ReadPlace } from "../core/reading.ts";
import type { Captures, Delivery, Quality, TagId } from "../core/source.ts";

/** Observer of input failures, called during mapping. Must return quickly. */
export interface InputWatch {
  /**
   * An input became unusable. `since`: time of its last usable reading, or the start of the failure according to the
   * device; undefined: neither is known. `refused`: it has no Input ID. `input` is then a template, or an Input ID with
   * the refused address in parentheses.
   */
  failed(input: string, since: EpochMicros | undefined, cause: "bad" | "refused", reason: string): void;
  /** `time`: that of the first usable reading. */
  recovered(input: string, time: EpochMicros): void;
}

/** Maps the readings of one source. Keeps its state in memory. Disposal releases its Input IDs. */
export interface Mapping extends Disposable {
  /**
   * Returns the points of these readings in order. The catalog has the metadata of their signals before this returns.
   * Readings without a point are counted and shown in `tags`. Inputs of `alive` tags whose `heartbeat` has elapsed
   * repeat their last good value with the current time.
   */
  map(delivery: Pick<Delivery, "readings" | "descriptions" | "alive">): readonly Point[];
  /** As `map`, from columns to columns, without an allocation per reading. */
  mapBatches(delivery: Pick<Delivery, "descriptions" | "alive">, batches: readonly ReadingBatch[]): PointBatch;
  /** Points held back by `minInterval` that are now due. */
  due(): readonly Point[];
  /** When `due` will return points, in monotonic milliseconds. Undefined: no point is held. */
  readonly nextDue: number | undefined;
  /** All held points, for shutdown. */
  flush(): readonly Point[];
  /** Claims unowned Input IDs for the addresses of a new connection, in order. Refuses second addresses. */
  claim(addresses: Iterable<ReadPlace>): void;
  /** A gap is possible: the next good reading of every input is stored regardless of `report`. */
  reconnected(): void;
  /** One entry for each known input, and one for each tag without inputs. */
  tags(): readonly TagState[];
  /** At most `count` entries of `tags` from index `first`, and their total number. Skipped entries are cheap. */
  tagsIn(first: number, count: number): { readonly total: number; readonly tags: readonly TagState[] };
  /** Calls `each` with the last values of the first `most` entries of `tags`. Returns their number. */
  values(most: number, each: (input: string, value: number | undefined) => void): number;
  /** The Input ID for this tag, captures and address. Undefined: its readings are refused. */
  inputOf(tag: TagId, captures: Captures, address?: string): InputId | undefined;
  /** One input with its rules and latest readings, which are recorded from the first call on. Undefined: unknown. */
  inspect(tag: number, input: string): InspectedInput | undefined;
  /** Refused inputs and addresses with the reason, at most 100. */
  refusals(): readonly RefusedInput[];
  /** Inputs whose device clock stands still, or whose times repeat often. */
  timeFaults(): TimeFaults;
  /** Why this address is refused. Undefined: it is not, or it is not listed in `refusals`. */
  refusalOf(tag: TagId, captures: Captures, address: string): RefusedInput | undefined;
}

/** State of an input, or of a tag without inputs. Counts start when the mapping is opened. */
export interface TagState {
  readonly tag: TagId;
  /** The Input ID, or the configured template if it is not filled yet. */
  readonly input: string;
  readonly resolved: boolean;
  /** In the driver's notation. Empty: nothing was read yet. */
  readonly address: string;
  /** The last value in the signal's unit, stored or not. Undefined: none. */
  readonly value: number | undefined;
  /** Name of the state, for an enumeration. */
  readonly text: string | undefined;
  readonly unit: string | undefined;
  readonly time: EpochMicros | undefined;
  readonly quality: Quality | undefined;
  /** Why there is no value, or why it is not good. */
  readonly reason: string | undefined;
  readonly readings: number;
  readonly stored: number;
  /** Readings that `report` suppressed. */
  readonly filtered: number;
  /** Readings without a usable value: none, bad quality or out of range. */
  readonly bad: number;
}

export interface InspectedReading extends Pick<Reading, "time" | "clock" | "quality" | "address"> {
  /** The value of the device as text; a text in quotes. Left out: there was none. */
  readonly raw?: string;
  /** Type of `raw` in the program: `number`, `bigint`, `boolean` or `string`. */
  readonly type: string;
  /** In the signal's unit. Left out: no usable value, or a value of the history or of a refused address. */
  readonly value?: number;
  readonly stored: boolean;
  /** The rule that decided, as a clause: `differs from 20 by more than 0.5`. */
  readonly why: string;
}

export interface InspectedInput {
  readonly state: TagState;
  readonly rules: readonly string[];
  /** Newest first, at most 20. */
  readonly latest: readonly InspectedReading[];
}

/** `standing`: the device clock stands still. `repeats`: readings often repeat the previous device time. */
export interface InputTimeFault {
  readonly tag: TagId;
  readonly input: InputId;
  readonly address: string;
  readonly kind: "standing" | "repeats";
  /** How many of the latest `readings` had the previous device time and another value. */
  readonly repeats: number;
  readonly readings: number;
  /** How long the current device time has been repeated, in milliseconds. */
  readonly forMs: number;
}

/** The number of inputs with each fault, and the first 100 inputs. */
export interface TimeFaults {
  readonly standing: number;
  readonly repeats: number;
  readonly first: readonly InputTimeFault[];
}

export interface RefusedInput {
  readonly tag: TagId;
  /** The Input ID, or the filled template if that is not a valid Input ID. */
  readonly input: string;
  /** The refused address. Empty: nothing was read yet. */
  readonly address: string;
  /** The feeder of the Input ID. Undefined: the Input ID is refused for another reason. */
  readonly fedBy?: { readonly source: string; readonly address: string };
  readonly reason: string;
  readonly remedy: string;
  readonly readings: number;
}
