// A connection to a device or broker: what it delivers, and how deliveries are acknowledged.
import type { Recovery, TagGap } from "./gap.ts";
import type { AheadTime, Quality, Reading, ReadingBatch } from "./reading.ts";
import type { PartialSignalMetadata } from "./signal.ts";
import type { Captures, TagId } from "./tag.ts";

export type { AheadTime, Captures, Quality, Reading, TagId };

/** Metadata of a tag from the device. The configuration overrides it, and it overrides defaults. */
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
   * True if the device is known to be alive and values that it did not send are unchanged, as with a keep-alive of OPC UA. The
   * mapping then stores values again whose `heartbeat` is due. Omitted where silence proves nothing (MQTT) or where
   * every value is read (Modbus).
   */
  readonly alive?: boolean;
  /** Gaps that were found, or whose state changed, at the time of these readings or before. */
  readonly gaps?: readonly TagGap[];
  /** Whether the sender waits for `ack`. Then the disk is synced at once, otherwise after `buffer.sync`. */
  readonly awaited: boolean;
  /**
   * Resolves when the device has stopped sending, or is about to, until it gets an acknowledgement. Then the buffer does not
   * wait for more deliveries before it syncs. Never rejects. Omitted: unknown, and the buffer waits shortly for others.
   */
  readonly hurry?: Promise<void>;
  /**
   * Acknowledges the readings to the device: PUBACK in MQTT, nothing in Modbus. Called at most once, after the points are on
   * disk. If it is not called, the device may send the readings again.
   */
  ack(): void;
}

/** One live connection. Never reconnected: when lost, `deliveries` throws, the caller disposes it and opens a new one with back-off. */
export interface Source extends AsyncDisposable {
  /**
   * Yields until the connection is lost (throws `SOURCE_*`) or `signal` aborts (then ends without an error). Pulling is
   * the back-pressure. A driver that is pushed to gathers everything since the last pull (at most 10,000 readings) into
   * one delivery, so that one append and one sync serve many messages. Called once.
   */
  deliveries(signal: AbortSignal): AsyncIterable<Delivery>;
  /** What keeps values while `deliveries` is not pulled, such as `the broker`. Undefined: values that are not read in time are lost. */
  readonly holder?: string | undefined;
  /** How the values since the previous connection are recovered. Undefined: they are lost. */
  readonly recovery?: Recovery | undefined;
  /**
   * The addresses that this connection reads, in an order that does not depend on which value comes first, such as the
   * order in which the server lists them. The first of several that come to one Input ID feeds it. Called before
   * `deliveries`. Undefined: addresses are known only when a value comes.
   */
  readonly addresses?: readonly FoundAddress[] | undefined;
  /**
   * Asks whether each device behind the connection is there, and which tags it refuses, for a person who commissions the source.
   * Each address is read at most once. Called in place of `deliveries`. Undefined: an open connection proves that the device
   * is there, and the device refuses no tag. Rejects with the errors that `deliveries` throws.
   */
  check?(signal: AbortSignal): Promise<SourceCheck>;
  /** What an operator wants to know of this connection, for the status page: revised values, the broker's limits. */
  details?(): Readonly<Record<string, string | number>>;
  /** Problems of a connection that still delivers values, with their remedies. The status shows them as warnings. */
  warnings?(): readonly SourceWarning[];
  /** Addresses that the device sent and no tag matches, most frequent first, at most 50. An operator needs them to add tags. */
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

/** A fault of a configuration whose fields are valid each by itself. */
export interface ConfigFault {
  readonly tag: TagId;
  /** The field of the tag at fault. If the configuration does not contain it, the error points at the tag. */
  readonly field: string;
  /** What was expected and what stands there, after the path: `must be from 1 to 247 on a bus, is 0`. */
  readonly message: string;
  /** What to write instead. */
  readonly hint?: string;
}
