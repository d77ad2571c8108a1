// The contract of a protocol: what a driver offers, what a connection yields, what a device is told.
import type { z } from "zod";
import type { DriverExample, ProbeRow, ProbeTarget, SecurityFinding, TrustStore } from "./commissioning.ts";
import type { Recovery, TagGap } from "./gap.ts";
import type { AheadTime, Quality, Reading, ReadingBatch } from "./reading.ts";
import type { Runtime } from "./runtime.ts";
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

/** A tag as a driver gets it: its own address fields, and what every protocol has. */
export type DriverTag<Tag extends z.ZodObject> = z.output<Tag> & {
  /** Milliseconds between readings: poll interval in Modbus, sampling interval in OPC UA; of no effect in MQTT. From 50. */
  readonly every: number;
  /** Captured names that fill `signal` alone. They describe a thing and do not distinguish it from another. */
  readonly descriptive?: readonly string[];
  /** Captured names that `input` or `signal` use; nothing has to be made of the others. Undefined: all. */
  readonly fills?: readonly string[];
};

/** Everything `open` needs, checked, cascaded and expanded: templates and devices are gone, each tag stands for itself. */
export interface DriverConfig<Options extends z.ZodObject, Tag extends z.ZodObject> {
  /** Name of the source in logs, metrics and status. */
  readonly name: string;
  /** `agent.name`: for client identifiers and application names. */
  readonly agent: string;
  /** Folder for what this source must remember (certificates, learned limits), mode 0700; may not exist yet. */
  readonly stateDir: string;
  /**
   * Folder for what belongs to the agent as a whole and its sources share: its certificate, and whom it trusts. Undefined:
   * `stateDir`.
   */
  readonly sharedDir?: string;
  /** Where the configuration was read, for commands that are proposed to people. */
  readonly configFile?: string | undefined;
  /**
   * Asked when the connection ends: true where none follows, so that nothing of it may stay at the device (a probe, a source
   * that was removed). Otherwise, and where it is left out, what the device keeps for the next connection stays there.
   */
  readonly final?: () => boolean;
  readonly options: z.output<Options>;
  /** `TagId` is the index in here. */
  readonly tags: readonly DriverTag<Tag>[];
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

/** What of the options of a source is allowed but hardly meant. */
export interface ConfigWarning {
  /** The option that it is about. */
  readonly field: string;
  /** What is the matter, after the path. */
  readonly message: string;
  /** What to write instead. */
  readonly hint: string;
}

/** Whose options they are. */
export interface SourceOwner {
  /** `agent.name`. */
  readonly agent: string;
  /** Name of the source. */
  readonly source: string;
}

/** Something at a device that one source may use at a time. */
export interface Claim {
  /** The same for two sources that would disturb each other. */
  readonly key: string;
  /** The option to blame. */
  readonly field: string;
  /** What is claimed, to be read after the path of the option and before `as <the other source>`. */
  readonly message: string;
  /** What to write instead. */
  readonly hint: string;
  /** Whether two sources with this key need not disturb each other: a warning instead of an error. */
  readonly uncertain?: boolean;
}

/** Several addresses that can come to one Input ID. */
export interface Ambiguity {
  /** Which addresses, to be read after the path of `input`: `several topics match sensors/+/temp`. */
  readonly message: string;
  /** How to tell them apart: `use {path}`. */
  readonly remedy: string;
  /** Each message has several such values: the tag cannot have been meant like this. */
  readonly always?: true;
}

/** Two tags that read the same values, whatever the device sends. */
export interface TagOverlap {
  readonly tags: readonly [TagId, TagId];
  /** What each of them captures of one example, which stands for all. */
  readonly captures: readonly [Captures, Captures];
  /** What both read: `each message of s/kitchen/t`. */
  readonly what: string;
}

/** A protocol: what its options look like and how to open a connection. A new protocol is one folder that exports one driver. */
export interface Driver<
  Type extends string = string,
  Options extends z.ZodObject = z.ZodObject,
  Tag extends z.ZodObject = z.ZodObject,
> {
  readonly type: Type;
  /** One line for lists and the reference. */
  readonly summary: string;
  readonly example: DriverExample;
  /** What else it may mean that nothing came of a tag, for who looks at it; starts in lower case. */
  readonly silence?: string;
  /** What stands beside `tags` in the configuration of a source. Strict; secrets as `secret()`, intervals as `duration()`. */
  readonly schema: Options;
  /**
   * The fields of a tag that are this protocol's: `topic`, `at`, `node`. A field that an entry of `devices` or a
   * template may give for all its tags is named in `device`.
   */
  readonly tag: Tag;
  /** Names of the fields of `tag` that may stand on an entry of `devices`. Undefined: this protocol has no devices. */
  readonly device?: readonly string[];
  /** Whether descriptions may state the range of a value: then a dead band in percent needs no `valid`. */
  readonly ranges?: boolean;
  /**
   * Names that `tag` captures and that may stand in braces in `input` and `signal`. Undefined: it captures nothing.
   */
  captures?(tag: z.output<Tag>): readonly string[];
  /**
   * Whether several addresses of `tag` can come to one Input ID that is filled with `names` only, and what to write
   * instead. Undefined: every address comes to an Input ID of its own.
   */
  ambiguity?(tag: Omit<DriverTag<Tag>, "every">, names: readonly string[]): Ambiguity | undefined;
  /**
   * Tags of one source that read the same values for certain, as far as the configuration tells, and of which one has a
   * pattern as its address. Undefined: it tells nothing.
   */
  overlaps?(tags: readonly DriverTag<Tag>[]): Iterable<TagOverlap>;
  /**
   * What is allowed of an Input ID that is filled with `names` but hardly meant: one that changes with something else than the
   * thing it names. `check` shows it at the tag.
   */
  remarks?(tag: z.output<Tag>, names: readonly string[]): readonly ConfigWarning[];
  /** All that is wrong with options and tags only when they are seen together. They are what `schema` and `tag` gave. */
  faults?(config: Pick<DriverConfig<Options, Tag>, "options" | "tags">): readonly ConfigFault[];
  /** What is allowed but hardly meant: `check` tells it, and the log at each start. */
  warnings?(options: z.output<Options>): readonly ConfigWarning[];
  /**
   * Names what only one source may use, since its requests have to wait for each other: a serial line, `host:port` of a
   * device. Two sources of this driver with the same name are an error. Undefined: any number may.
   */
  connection?(options: z.output<Options>): string | undefined;
  /**
   * What no other source may use at the same time, in this configuration or in that of another agent: the session of a client
   * identifier at a broker. Undefined: any number of sources may have the same options.
   */
  claims?(options: z.output<Options>, owner: SourceOwner): readonly Claim[];
  /**
   * Longest pause before `open` is called again while the device cannot be reached, in milliseconds; for drivers whose attempt
   * costs a dead device or network next to nothing. Undefined: the back-off of all sources, up to 30 s.
   */
  readonly unreachablePauseMs?: number;
  /**
   * Names what the state that a device keeps for this source belongs to: the device, and who logs in. A source whose options
   * change it does not take that state up again. Undefined: the device keeps none.
   */
  identity?(options: z.output<Options>): string;
  /**
   * Connects. Rejects with `SOURCE_UNREACHABLE`, `SOURCE_REFUSED` or `SOURCE_PROTOCOL`, or with `signal.reason`. A
   * `SOURCE_REFUSED` because of the tags has `{ refused }` as its cause, as `SourceCheck` does.
   */
  open(config: DriverConfig<Options, Tag>, runtime: Runtime, signal: AbortSignal): Promise<Source>;
  /**
   * The same source for a look beside a running agent, which must not notice: another identity, nothing kept at the
   * device, nothing taken from the agent. `temporaryDir`: an empty folder that takes the place of `stateDir` and is
   * removed afterwards. Undefined: `stateDir` is all that has to be another one.
   */
  beside?(config: DriverConfig<Options, Tag>, temporaryDir: string): Promise<DriverConfig<Options, Tag>>;
  /** Of the addresses that `browse` takes, without the colon: how it is known which driver is meant. */
  readonly schemes?: readonly string[];
  browse?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): AsyncIterable<BrowsedNode>;
  /** The ways into a device, where it tells of several, and what protects each. */
  endpoints?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly OfferedEndpoint[]>;
  /** Reads one place of a device in every way that it may be meant, the likeliest first, for `probe`. */
  probe?(target: ProbeTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly ProbeRow[]>;
  /** The certificates of devices, where a person decides which of them the agent trusts. */
  readonly certificates?: TrustStore;
  /** What protects a source with these options, as far as they tell before it connects. Undefined: they tell nothing. */
  findings?(options: z.output<Options>): readonly SecurityFinding[];
  /** What the configuration will cost: readings a second, requests a second, bus load. For `check`. */
  forecast?(config: DriverConfig<Options, Tag>): Forecast;
}

/** Where `browse` looks. */
export interface BrowseTarget {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  /** As `security` of a source of this protocol. Undefined: as the protocol sees fit for a look that keeps nothing. */
  readonly security?: Readonly<Record<string, string>>;
  /** A user's certificate in place of user name and password, as `userCertificate` of a source. */
  readonly userCertificate?: Readonly<Record<string, string>>;
  /** Thumbprint of the device's certificate, which a person has compared: it is trusted, this once unless `sharedDir` is given. */
  readonly trust?: string;
  /** `sharedDir` of an agent: its certificate is used, and what it trusts. Undefined: certificates of the moment. */
  readonly sharedDir?: string;
  /** Name of that agent, for the certificate that is made where it has none yet. */
  readonly agent?: string;
  /** Configuration of that agent, for commands that are proposed to people. */
  readonly configFile?: string;
  /** Options of a source of this driver, as its schema gave them, where that source is browsed. What stands above goes before. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A way into a device. */
export interface OfferedEndpoint {
  /** As the device names it. */
  readonly address: string;
  /** What protects it, in the words of the configuration. */
  readonly security: string;
  /** Whether a source uses it without being told to by the configuration. */
  readonly secure: boolean;
  /** Who may log in: `anonymous`, `username`, `certificate`. */
  readonly logins: readonly string[];
  /** Thumbprint of the certificate that the device shows there. */
  readonly certificate?: string;
  /** Whose certificate it is, and when it begins and ends. */
  readonly subject?: string;
  readonly validFrom?: string;
  readonly validTo?: string;
  /** SHA-256 of the certificate in hex. */
  readonly sha256?: string;
  /** A password would cross the network in clear text. */
  readonly passwordInClear?: boolean;
  /** What is weak about it. */
  readonly warning?: string;
}

/** One thing a device offers. */
export interface BrowsedNode {
  readonly address: string;
  readonly name: string;
  readonly depth: number;
  readonly value?: number | bigint | boolean | string;
  /** Its type in the protocol's words: `Double`, `Int32[]`. */
  readonly type?: string;
  /** How often it changed or came, a second, where browsing listens. */
  readonly perSecond?: number;
  readonly signal: PartialSignalMetadata;
  /** The tag as it would stand in the configuration. */
  readonly tag: Readonly<Record<string, unknown>>;
}

/** What a source will cost. Undefined: cannot be known beforehand, as with messages that come when they come. */
export interface Forecast {
  readonly readingsPerSecond?: number;
  readonly requestsPerSecond?: number;
  /** Share of the time the bus is busy, 0 to 1. */
  readonly busLoad?: number;
}
