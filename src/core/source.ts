// A connection to a device or broker: its deliveries, and how they are acknowledged.
import type { EpochMicros } from "./point.ts";
import type { AheadTime, Captures, Quality, Reading, ReadingBatch, ReadPlace, TagId } from "./reading.ts";
import type { PartialSignalMetadata } from "./signal.ts";

export type { AheadTime, Captures, Quality, Reading, TagId };

/** Metadata of a tag from the device. It overrides defaults; the configuration overrides it. */
export interface Description {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`. Only the address that feeds an Input ID describes it. Undefined: the tag has one address. */
  readonly address?: string;
  readonly signal: PartialSignalMetadata;
  /** Range of the value in engineering units, if the device knows it. A dead band in percent refers to it. */
  readonly range?: { readonly min: number; readonly max: number };
}

/** Readings that arrived together and are acknowledged together. */
export interface Delivery {
  readonly readings: readonly Reading[];
  /**
   * The same readings in columns and in the same order, if the driver decodes into columns: see `batchDelivery`. The
   * pipeline prefers them. A stage that replaces `readings` must therefore set this to undefined.
   */
  readonly batches?: readonly ReadingBatch[] | undefined;
  readonly descriptions: readonly Description[];
  /**
   * Tags of which the device has sent all changes so far, as with any message of an OPC UA subscription. The mapping then
   * stores their values again if the `heartbeat` is due. Omitted if silence proves nothing (MQTT) or every value is read
   * (Modbus).
   */
  readonly alive?: readonly ReadonlySet<TagId>[];
  /** Gaps that were found or changed state up to the time of these readings. */
  readonly gaps?: readonly TagGap[];
  /** Whether the sender waits for `ack`. If so, the buffer syncs immediately, otherwise after `buffer.sync`. */
  readonly awaited: boolean;
  /**
   * Resolves when the device has stopped, or is about to stop, sending until it receives an acknowledgement. The buffer
   * then syncs without waiting for more deliveries. Never rejects. Omitted: unknown, and the buffer waits briefly.
   */
  readonly hurry?: Promise<void>;
  /**
   * Acknowledges the readings to the device: PUBACK in MQTT, no action in Modbus. Called at most once, after the points
   * are on disk. Without the call the device may send the readings again.
   */
  ack(): void;
}

/** One live connection. After a loss `deliveries` throws; the caller disposes it and opens a new one with back-off. */
export interface Source extends AsyncDisposable {
  /**
   * Yields until the connection is lost (throws `SOURCE_*`) or `signal` aborts (ends without an error). Pulling
   * provides the back-pressure. A driver that receives pushed data collects up to 10,000 readings since the last pull
   * into one delivery. One append and one sync then serve many messages. Called once.
   */
  deliveries(signal: AbortSignal): AsyncIterable<Delivery>;
  /** What retains values while `deliveries` is not pulled: `the broker`. Undefined: unread values are lost. */
  readonly retainedBy?: string | undefined;
  /**
   * The places that this connection reads by requests, if it reads none in another way. A place is then not recorded
   * from the connection until its first reading. Each gets a reading in every poll, also if it fails. While
   * `deliveries` is not pulled, polling continues; readings that are dropped are reported as a bad one. Omitted or empty:
   * values come unasked, so all are recorded from the connection on.
   */
  readonly polled?: readonly ReadPlace[];
  /** How the values since the previous connection are recovered. Undefined: they are lost. */
  readonly recovery?: Recovery | undefined;
  /**
   * Addresses that this connection reads, in an order independent of the arrival of values, such as the server's
   * listing order. If several lead to one Input ID, the first one feeds it. Read before `deliveries` is called.
   * Undefined: addresses become known only with their values.
   */
  readonly addresses?: readonly ReadPlace[] | undefined;
  /**
   * Checks which devices behind the connection answer and which tags they refuse, for commissioning. Reads each address
   * at most once. Called in place of `deliveries`. Undefined: an open connection proves that the device answers, and it
   * refuses no tag. Rejects with the errors that `deliveries` throws.
   */
  check?(signal: AbortSignal): Promise<SourceCheck>;
  /** Properties of this connection for the status page: revised values, limits of the broker. */
  details?(): Readonly<Record<string, string | number>>;
  /** Problems of a connection that still delivers values. The status shows them as warnings. */
  warnings?(): readonly SourceWarning[];
  /** Received addresses that match no tag, most frequent first, at most 50. They help the operator to add tags. */
  unknown?(): readonly UnknownAddress[];
}

/** Results of reading every tag of a source once. */
export interface SourceCheck {
  /** Each device behind the connection. Empty: the connection leads to a single device. */
  readonly devices?: readonly DeviceCheck[];
  /** Tags that cannot work without a change of tag or device: `expected …, got …`. Excludes transient failures. */
  readonly refused: readonly ConfigFault[];
  /** Values that were read, at most one for each address. */
  readonly values?: readonly Pick<Reading, "tag" | "value">[];
}

/** Result of the check of one device behind a connection. */
export interface DeviceCheck {
  /** `unit 7` */
  readonly device: string;
  readonly ok: boolean;
  /** The value that was read, or the problem, to be read after `device`. */
  readonly text: string;
  /** What the operator should do. Set if `ok` is false. */
  readonly remedy?: string;
}

/** For people: `message` starts in lower case and does not name the source. */
export interface SourceWarning {
  readonly message: string;
  readonly remedy: string;
}

export interface UnknownAddress {
  /** In the driver's notation, as `Reading.address`. */
  readonly address: string;
  /** Number of messages or values with this address on this connection. */
  readonly count: number;
  /** The first payload: text or hexadecimal digits, shortened. */
  readonly sample: string;
}

/** A fault of a configuration whose fields are each valid on their own. */
export interface ConfigFault {
  readonly tag: TagId;
  /** The field of the tag at fault. If the configuration does not contain it, the error points at the tag. */
  readonly field: string;
  /** Expected and actual value, to be read after the path: `must be from 1 to 247 on a bus, is 0`. */
  readonly message: string;
  readonly hint?: string;
}

/**
 * How values since the previous connection are recovered. `kept`: the broker or server kept all and delivers them.
 * `history`: the driver reads them from the device's history and reports incomplete tags in `Delivery.gaps`.
 */
export type Recovery =
  | {
      readonly how: "kept";
      /** The reason, for people: `the broker had kept the session`. */
      readonly by: string;
    }
  | { readonly how: "history" };

/** An interval in which one tag misses values. Reported again, with the same times, when its state changes. */
export interface TagGap {
  readonly tag: TagId;
  readonly captures: Captures;
  /** As `Reading.address`. Only gaps of the address that feeds an Input ID count. Undefined: the only address. */
  readonly address?: string;
  /** Times of the last value before and the first value after the gap. Both values are delivered. */
  readonly from: EpochMicros;
  readonly to: EpochMicros;
  /** `interruption`: connection lost or server restarted. `overflow`: broker or server discarded queued values. */
  readonly cause: "interruption" | "overflow";
  /** `open`: recovery is in progress. A gap is reported as `filled` after the readings that fill it. */
  readonly state: "open" | "filled" | "lost";
  /** Why it is a gap; where `lost`, why it could not be filled: `BadHistoryOperationUnsupported`. */
  readonly reason: string;
}
