// From readings to points: finds each reading's input and applies the rules of its tag.

import type { EpochMicros, InputId, Point, PointBatch } from "../core/point.ts";
import type { ReadingBatch } from "../core/reading.ts";
import type { Captures, Delivery, FoundAddress, Quality, TagId } from "../core/source.ts";

/** Told while a delivery is mapped; must return quickly. */
export interface InputWatch {
  /**
   * `since`: its last usable reading, or when the device says that it has been unusable; undefined: there was none.
   * `refused`: there is no Input ID for it; `input` may be a template then, or an Input ID with the address that was
   * refused in parentheses.
   */
  failed(input: string, since: EpochMicros | undefined, cause: "bad" | "refused", reason: string): void;
  /** With the time of the first usable reading. */
  recovered(input: string, time: EpochMicros): void;
}

/** Maps the readings of one source. Holds memory only; disposing it gives its Input IDs back. */
export interface Mapping extends Disposable {
  /**
   * The points of these readings, in their order. What is known of their signals is in the catalog before this
   * returns. Readings that are dropped, refused or not worth a point are counted and shown in `tags`. Where the
   * delivery says that the device is alive, the last good value of every input whose `heartbeat` is over follows, with
   * the present time.
   */
  map(delivery: Pick<Delivery, "readings" | "descriptions" | "alive">): readonly Point[];
  /** As `map`, of readings in columns, into columns: nothing is allocated for a single reading. */
  mapBatches(delivery: Pick<Delivery, "descriptions" | "alive">, batches: readonly ReadingBatch[]): PointBatch;
  /** Points that `minInterval` held back and whose time has come. */
  due(): readonly Point[];
  /** When `due` will have points, in milliseconds of the monotonic clock. Undefined: nothing is held back. */
  readonly nextDue: number | undefined;
  /** Everything that is held back, for the end. */
  flush(): readonly Point[];
  /**
   * The addresses that a new connection reads, in their order: each claims its Input ID unless that has one already.
   * A second address of an Input ID shows in `refusals` before it gives a value.
   */
  claim(addresses: Iterable<FoundAddress>): void;
  /** There may have been a gap: the next good reading of every input is stored whatever `report` says. */
  reconnected(): void;
  /** One entry for each input seen, and one for each tag that has none yet. */
  tags(): readonly TagState[];
  /** Of `tags` those from `first` on, at most `count`, and how many there are: the others cost next to nothing. */
  tagsIn(first: number, count: number): { readonly total: number; readonly tags: readonly TagState[] };
  /** Calls `each` with the last value of each of `tags`, of the first `most` of them. Returns how many those are. Makes no object for a tag. */
  values(most: number, each: (input: string, value: number | undefined) => void): number;
  /** The Input ID that readings of this tag with these captures, from this address, have. Undefined: they are refused. */
  inputOf(tag: TagId, captures: Captures, address?: string): InputId | undefined;
  /** Inputs and addresses that were refused, at most 100, with the reason. */
  refusals(): readonly RefusedInput[];
  /** Inputs whose device clock stands still or whose times repeat often. */
  timeFaults(): TimeFaults;
  /** Why the last reading of this address was refused. Undefined: it was not, or it is not among `refusals`. */
  refusalOf(tag: TagId, captures: Captures, address: string): RefusedInput | undefined;
}

/** What is known of an input, or of a tag that has none yet. Counts are since the mapping was opened. */
export interface TagState {
  readonly tag: TagId;
  /** The Input ID; the template as configured while nothing has filled it. */
  readonly input: string;
  /** Whether `input` is an Input ID rather than a template. */
  readonly resolved: boolean;
  /** In the driver's notation; empty while nothing was read. */
  readonly address: string;
  /** The last value in the signal's unit, stored or not; undefined: there is none. */
  readonly value: number | undefined;
  /** The state's name where the signal is an enumeration. */
  readonly text: string | undefined;
  readonly unit: string | undefined;
  readonly time: EpochMicros | undefined;
  readonly quality: Quality | undefined;
  /** Why there is no value, or why it is not good. */
  readonly reason: string | undefined;
  readonly readings: number;
  readonly stored: number;
  /** Not stored because `report` did not find them worth a point. */
  readonly filtered: number;
  /** Not stored because there was no value, its quality was bad or it was out of range. */
  readonly bad: number;
}

/** `standing`: the device clock stands still. `repeats`: readings often have the device time of the one before. */
export interface InputTimeFault {
  readonly tag: TagId;
  readonly input: InputId;
  readonly address: string;
  readonly kind: "standing" | "repeats";
  /** Of the latest `readings`, how many had the device time of the one before and another value. */
  readonly repeats: number;
  readonly readings: number;
  /** How long the present device time has been repeated, in milliseconds. */
  readonly forMs: number;
}

/** How many inputs have each fault, and the first 100. */
export interface TimeFaults {
  readonly standing: number;
  readonly repeats: number;
  readonly first: readonly InputTimeFault[];
}

export interface RefusedInput {
  readonly tag: TagId;
  readonly input: string;
  /** The address whose readings are not stored; empty while nothing was read. */
  readonly address: string;
  /** Who feeds the Input ID. Undefined: there is no such Input ID. */
  readonly fedBy?: { readonly source: string; readonly address: string };
  readonly reason: string;
  readonly remedy: string;
  /** Readings that were not stored. */
  readonly readings: number;
}
