// The contract of a protocol: what a driver offers, from its options to a connection.
import type { z } from "zod";
import type {
  BrowsedNode,
  BrowseTarget,
  DriverExample,
  OfferedEndpoint,
  ProbeRow,
  ProbeTarget,
  SecurityFinding,
  TrustStore,
} from "./commissioning.ts";
import type { Runtime } from "./runtime.ts";
import type { ConfigFault, Source } from "./source.ts";
import type { Captures, TagId } from "./tag.ts";

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
  /** True if every message has several such values, so the tag is certainly a mistake: an error instead of a warning. */
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
   * pattern as its address. Undefined: the options do not show it.
   */
  overlaps?(tags: readonly DriverTag<Tag>[]): Iterable<TagOverlap>;
  /**
   * What is allowed of an Input ID that is filled with `names` but hardly meant: one that changes with something else than the
   * thing it names. `check` shows it at the tag.
   */
  remarks?(tag: z.output<Tag>, names: readonly string[]): readonly ConfigWarning[];
  /** Returns faults that appear only when options and tags are checked together. Both have passed `schema` and `tag`. */
  faults?(config: Pick<DriverConfig<Options, Tag>, "options" | "tags">): readonly ConfigFault[];
  /** Settings that are allowed but probably unintended. `check` reports them, and the log at each start. */
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
  /** The endpoints of a device that lists several, with the protection of each. */
  endpoints?(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly OfferedEndpoint[]>;
  /** Reads one place of a device in every way that it may be meant, the likeliest first, for `probe`. */
  probe?(target: ProbeTarget, runtime: Runtime, signal: AbortSignal): Promise<readonly ProbeRow[]>;
  /** The certificates of devices, where a person decides which of them the agent trusts. */
  readonly certificates?: TrustStore;
  /** How a source with these options is protected, as far as is known before it connects. Undefined: unknown. */
  findings?(options: z.output<Options>): readonly SecurityFinding[];
  /** What the configuration will cost: readings a second, requests a second, bus load. For `check`. */
  forecast?(config: DriverConfig<Options, Tag>): Forecast;
}

/** What a source will cost. Undefined: cannot be known beforehand, as with messages that come when they come. */
export interface Forecast {
  readonly readingsPerSecond?: number;
  readonly requestsPerSecond?: number;
  /** Share of the time the bus is busy, 0 to 1. */
  readonly busLoad?: number;
}
