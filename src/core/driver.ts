// The contract of a protocol: what a driver offers, from its options to a connection.
import type { z } from "zod";
import type {
  BrowsedNode,
  BrowseListener,
  BrowseTarget,
  DeviceSearch,
  DriverExample,
  Explorer,
  OfferedEndpoint,
  OtherFormat,
  ProbeRow,
  ProbeTarget,
  SecurityFinding,
  TrustStore,
} from "./commissioning.ts";
import type { Captures, TagId } from "./reading.ts";
import type { Runtime } from "./runtime.ts";
import type { ConfigFault, Source } from "./source.ts";

/** A tag as a driver receives it: the address fields of the protocol, and the fields that all protocols share. */
export type DriverTag<Tag extends z.ZodObject> = z.output<Tag> & {
  /** Milliseconds between readings, at least 50: Modbus poll interval, OPC UA sampling interval. No effect in MQTT. */
  readonly every: number;
  /** Captured names that only fill `signal`. They describe the input and do not distinguish it from others. */
  readonly descriptive?: readonly string[];
  /** Captured names that `input` or `signal` use. The driver may skip the others. Undefined: all are used. */
  readonly fills?: readonly string[];
};

/** Input of `open`: checked, with defaults applied, and with templates and devices expanded into single tags. */
export interface DriverConfig<Options extends z.ZodObject, Tag extends z.ZodObject> {
  /** Name of the source in logs, metrics and status. */
  readonly name: string;
  /** `agent.name`, for client identifiers and application names. */
  readonly agent: string;
  /**
   * Name that the device keeps state for, if several agents can read the source. A lease ensures that one of them does,
   * and `stateDir` has the state that the one before it left. Undefined: `agent`.
   */
  readonly identity?: string | undefined;
  /**
   * Identifies the moment from which on this agent reads the source, if another one has read it before. `stateDir` may
   * then be older than what that one has acknowledged.
   */
  readonly takeover?: number | undefined;
  /** Folder for the persistent state of this source (certificates, learned limits), mode 0700. It may not exist yet. */
  readonly stateDir: string;
  /** Folder shared by all sources of the agent, for its certificate and trust list. Undefined: `stateDir`. */
  readonly sharedDir?: string;
  /** Path of the configuration file, for the commands that messages suggest. */
  readonly configFile?: string | undefined;
  /**
   * Called when the connection ends. True: no connection follows (a probe, a removed source), so the driver removes its
   * state at the device. False or undefined: the device keeps that state for the next connection.
   */
  readonly final?: () => boolean;
  readonly options: z.output<Options>;
  /** A `TagId` is an index into this array. */
  readonly tags: readonly DriverTag<Tag>[];
}

/** A setting that is allowed but probably unintended. */
export interface ConfigWarning {
  readonly field: string;
  /** The problem, to be read after the path of the option. */
  readonly message: string;
  readonly hint: string;
}

export interface SourceOwner {
  readonly agent: string;
  readonly source: string;
}

/** A resource at a device that only one source may use at a time. */
export interface Claim {
  /** Equal for two sources that would disturb each other. */
  readonly key: string;
  /** The option that the error message points at. */
  readonly field: string;
  /** The claimed resource, to be read between the path of the option and `as <the other source>`. */
  readonly message: string;
  readonly hint: string;
  /** Two sources with this key may work after all: a warning instead of an error. */
  readonly uncertain?: boolean;
}

/** Several addresses that can lead to the same Input ID. */
export interface Ambiguity {
  /** The addresses, to be read after the path of `input`: `several topics match sensors/+/temp`. */
  readonly message: string;
  /** How to distinguish them: `use {path}`. */
  readonly remedy: string;
  /** Every message has several such values, so the tag is certainly a mistake: an error instead of a warning. */
  readonly always?: true;
}

/** Two tags that read the same values for every message of the device. */
export interface TagOverlap {
  readonly tags: readonly [TagId, TagId];
  /** Captures of each tag for one example address. */
  readonly captures: readonly [Captures, Captures];
  /** What both read: `each message of s/kitchen/t`. */
  readonly what: string;
}

/** The contract of a protocol. A new protocol is one folder that exports one driver. */
export interface Driver<
  Type extends string = string,
  Options extends z.ZodObject = z.ZodObject,
  Tag extends z.ZodObject = z.ZodObject,
> {
  readonly type: Type;
  /** One line for lists and the reference. */
  readonly summary: string;
  readonly example: DriverExample;
  /** Another possible reason why a tag has no values, for the operator. Starts in lower case. */
  readonly silence?: string;
  /** Fields of a source next to `tags`. Strict; secrets as `secret()`, intervals as `duration()`. */
  readonly schema: Options;
  /** Fields of a tag of this protocol: `topic`, `at`, `node`. An entry of `devices` may set those in `device`. */
  readonly tag: Tag;
  /** Names of the fields of `tag` that an entry of `devices` may set. Undefined: this protocol has no devices. */
  readonly device?: readonly string[];
  /** Whether descriptions may state the range of a value. A dead band in percent then needs no `valid`. */
  readonly ranges?: boolean;
  /** Names captured by `tag`, for braces in `input` and `signal`. Undefined: the driver captures nothing. */
  captures?(tag: z.output<Tag>): readonly string[];
  /**
   * Whether several addresses of `tag` lead to one Input ID if `input` uses only `names`, with the remedy. Undefined:
   * each address has its own Input ID.
   */
  ambiguity?(tag: Omit<DriverTag<Tag>, "every">, names: readonly string[]): Ambiguity | undefined;
  /** Pairs of tags, one with a pattern as its address, that read the same values. Undefined: not detectable. */
  overlaps?(tags: readonly DriverTag<Tag>[]): Iterable<TagOverlap>;
  /** Warnings about an Input ID that uses `names`, for example one that is not stable. `check` reports them. */
  remarks?(tag: z.output<Tag>, names: readonly string[]): readonly ConfigWarning[];
  /** Faults that only options and tags together reveal. Both have passed `schema` and `tag`. */
  faults?(config: Pick<DriverConfig<Options, Tag>, "options" | "tags">): readonly ConfigFault[];
  /** Settings that are allowed but probably unintended. `check` reports them, and each start logs them. */
  warnings?(options: z.output<Options>): readonly ConfigWarning[];
  /**
   * Key of a resource that serves one request at a time: a serial line, `host:port` of a device. Two sources of this
   * driver with the same key are an error. Undefined: no limit.
   */
  connection?(options: z.output<Options>): string | undefined;
  /**
   * Resources that no other source may use at the same time, in this or another agent's configuration. Example: the
   * session of an MQTT client identifier. Undefined: any number of sources may have the same options.
   */
  claims?(options: z.output<Options>, owner: SourceOwner): readonly Claim[];
  /**
   * Longest pause in milliseconds before `open` is repeated for an unreachable device. Set if attempts cost device and
   * network almost nothing. Undefined: the common back-off, up to 30 s.
   */
  readonly unreachablePauseMs?: number;
  /**
   * Identity of the state that the device keeps for this source: the device and the login. If new options change it,
   * the source does not resume that state. Undefined: the device keeps none.
   */
  identity?(options: z.output<Options>): string;
  /**
   * Connects. Rejects with `SOURCE_UNREACHABLE` (no connection, or no answer in time), `SOURCE_REFUSED` (the device
   * answers that it does not permit this: login, certificate, tags), `SOURCE_PROTOCOL` (any other answer that cannot be
   * used), or with `signal.reason`. A `SOURCE_REFUSED` because of the tags has `{ refused }` as its cause, as
   * `SourceCheck` does.
   */
  open(config: DriverConfig<Options, Tag>, runtime: Runtime, signal: AbortSignal): Promise<Source>;
  /**
   * The configuration of a shadow source that runs alongside a running agent without disturbing it: another identity,
   * and no state kept at the device. `temporaryDir` is an empty folder that replaces `stateDir` and is removed
   * afterwards. Undefined: it is enough to replace `stateDir`.
   */
  shadow?(config: DriverConfig<Options, Tag>, temporaryDir: string): Promise<DriverConfig<Options, Tag>>;
  /** URL schemes, without the colon, of the addresses that `browse` accepts. They select the driver. */
  readonly schemes?: readonly string[];
  browse?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): AsyncIterable<BrowsedNode>;
  /** Connects for browsing on demand. Undefined: `browse` lists everything. Rejects as `browse` does. */
  explore?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<Explorer>;
  /** Listens to a device that sends by itself. Undefined: it is asked for values. Rejects as `browse` does. */
  listen?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<BrowseListener>;
  /**
   * Searches over the connection of the running source that reads the device, if there is one: many devices accept a
   * single connection. Undefined: `browse` on a connection of its own disturbs no source. Rejects as `browse` does.
   */
  search?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<DeviceSearch>;
  /** The endpoints of a device, each with its protection. Undefined: devices have a single endpoint. */
  endpoints?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly OfferedEndpoint[]>;
  /** Reads one place of a device in every plausible interpretation, the likeliest first. */
  probe?(target: ProbeTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly ProbeRow[]>;
  /**
   * What the device's data would be in other formats, the likeliest first, given the value read for `tag`. Empty if the
   * value does not tell the data. Undefined: devices describe the formats of their values.
   */
  otherFormats?(tag: DriverTag<Tag>, value: number): readonly OtherFormat[];
  /** Certificates of devices, if a person decides which ones the agent trusts. */
  readonly certificates?: TrustStore;
  /** Protection of a source with these options, as far as it is known without a connection. Undefined: unknown. */
  findings?(options: z.output<Options>): readonly SecurityFinding[];
  /** Estimated load of the configuration, for `check`. */
  forecast?(config: DriverConfig<Options, Tag>): Forecast;
}

/** Estimated load of a source. Undefined fields cannot be estimated, for example if the device decides when to send. */
export interface Forecast {
  readonly readingsPerSecond?: number;
  readonly requestsPerSecond?: number;
  /** Share of the time the bus is busy, 0 to 1. */
  readonly busLoad?: number;
}
