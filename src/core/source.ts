// What a connection yields, and what a device is told.
import type { Recovery, TagGap } from "./gap.ts";
import type { AheadTime, Quality, Reading, ReadingBatch } from "./reading.ts";
import type { PartialSignalMetadata } from "./signal.ts";
import type { Captures, TagId } from "./tag.ts";

export type { AheadTime, Captures, Quality, Reading, TagId };

/** What a device says about a tag: unit, range, enum texts, description. Configuration goes before device, device before defaults. */
export interface Description {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`: a second address of an Input ID does not describe it. Undefined: the tag's only one. */
  readonly address?: string;
  readonly signal: PartialSignalMetadata;
  /** Range of the value in engineering units, where the device knows it; what a dead band in percent is a part of. */
  readonly range?: { readonly min: number; readonly max: number };
}

/** An address that a tag leads to. */
export interface FoundAddress {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`. */
  readonly address: string;
}

/** Readings that arrived together and are acknowledged together. */
export interface Delivery {
  readonly readings: readonly Reading[];
  /**
   * The same readings in columns and in the same order, where the driver decodes into columns: see `batchDelivery`. A stage that
   * replaces `readings` must set this to undefined: the pipeline stores the batches where there are any.
   */
  readonly batches?: readonly ReadingBatch[] | undefined;
  readonly descriptions: readonly Description[];
  /**
   * The device was heard of, and what it did not tell has not changed, as with a keep-alive of OPC UA: values whose
   * `heartbeat` is over are stored again. Left out where silence says nothing (MQTT) or everything is read (Modbus).
   */
  readonly alive?: boolean;
  /** What has become known of missing values, of the time of these readings or before. */
  readonly gaps?: readonly TagGap[];
  /** Whether somebody on the other side waits for `ack`: then the disk is synced at once, else with `buffer.sync`. */
  readonly awaited: boolean;
  /**
   * Resolves when the device sends no more, or soon will not, before this is acknowledged: to gather for longer is in vain.
   * Never rejects. Left out: the driver cannot tell, and the delivery waits for others shortly.
   */
  readonly hurry?: Promise<void>;
  /** Tells the device that the readings are on disk: PUBACK in MQTT, nothing in Modbus. Not called: the delivery may come again. */
  ack(): void;
}

/** One live connection. Never reconnected: when lost, `deliveries` throws, the caller disposes it and opens a new one with back-off. */
export interface Source extends AsyncDisposable {
  /**
   * Yields until the connection is lost (throws `SOURCE_*`) or `signal` aborts (then ends without a word). Pulling is
   * the back-pressure. A driver that is pushed to gathers everything since the last pull (at most 10,000 readings) into
   * one delivery, so that one append and one sync serve many messages. Called once.
   */
  deliveries(signal: AbortSignal): AsyncIterable<Delivery>;
  /** Who keeps values while nobody pulls: `the broker`. Undefined: what is not read at its time is lost. */
  readonly holder?: string | undefined;
  /** What becomes of the time since the connection before this one. Undefined: what happened in it is lost. */
  readonly recovery?: Recovery | undefined;
  /**
   * The addresses that this connection reads, in an order that does not depend on which value comes first, such as the
   * order in which the server lists them. The first of several that come to one Input ID feeds it. Called before
   * `deliveries`. Undefined: addresses are known only when a value comes.
   */
  readonly addresses?: readonly FoundAddress[] | undefined;
  /**
   * Asks whether each device behind the connection is there, and which tags it refuses, for a person who commissions the source.
   * Each address is read at most once. Called in place of `deliveries`. Undefined: that the connection is open says that the
   * device is there, and it refuses nothing. Rejects as `deliveries` throws.
   */
  check?(signal: AbortSignal): Promise<SourceCheck>;
  /** What an operator wants to know of this connection, for the status page: revised values, the broker's limits. */
  details?(): Readonly<Record<string, string | number>>;
  /** What is not as it should be on this connection although values come, and what to do about it; shown as warnings of the status. */
  warnings?(): readonly SourceWarning[];
  /** What the device sent and no tag wants, most frequent first, at most 50: what is needed to write the next tag. */
  unknown?(): readonly UnknownAddress[];
}

/** What the devices of a source answered when they were asked for every tag. */
export interface SourceCheck {
  /** Each device behind the connection; empty where the connection leads to one. */
  readonly devices?: readonly DeviceCheck[];
  /** Tags that give no value as long as they and the device stay as they are: `expected …, got …`. Without transient failures. */
  readonly refused: readonly ConfigFault[];
  /** Values that were read, at most one of each address. */
  readonly values?: readonly Pick<Reading, "tag" | "value">[];
}

/** What one device behind a connection answered when it was asked for a value. */
export interface DeviceCheck {
  /** `unit 7` */
  readonly device: string;
  readonly ok: boolean;
  /** What was read, or what is wrong, to be read after `device`. */
  readonly text: string;
  /** What to do about it, where it is not ok. */
  readonly remedy?: string;
}

/** For people: `message` starts in lower case and does not name the source. */
export interface SourceWarning {
  readonly message: string;
  readonly remedy: string;
}

/** Something that arrives and that no tag wants. */
export interface UnknownAddress {
  /** In the driver's notation, as `Reading.address`. */
  readonly address: string;
  /** How often it came on this connection. */
  readonly count: number;
  /** The first that came: text, or hexadecimal digits; shortened. */
  readonly sample: string;
}

/** What is wrong with a configuration although each of its fields by itself is right. */
export interface ConfigFault {
  readonly tag: TagId;
  /** The field of the tag that is to blame; the tag as such where it is not written. */
  readonly field: string;
  /** What was expected and what stands there, after the path: `must be from 1 to 247 on a bus, is 0`. */
  readonly message: string;
  /** What to write instead. */
  readonly hint?: string;
}
