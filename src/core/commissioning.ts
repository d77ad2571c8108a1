// What a driver offers to the commands that set up and check an agent: examples, browsing, probing, certificates.
import type { PartialSignalMetadata } from "./signal.ts";
import type { Source } from "./source.ts";

/** Examples of a source of this protocol, for the file that `init` writes, for help and for messages. */
export interface DriverExample {
  /** Name of the protocol: `OPC UA`. */
  readonly protocol: string;
  /** What a source reads, with its article: `an OPC UA server`. */
  readonly device: string;
  /** Addresses with `host` as the host name: `opc.tcp://host:4840`. Empty: a source has no address. */
  readonly addresses: readonly string[];
  /** Entries of `devices` if the driver has devices, otherwise of `tags`; each is one line of YAML. */
  readonly entries: readonly string[];
}

export interface SecurityFinding {
  readonly state: "good" | "weak";
  readonly message: string;
  /** What the operator should change. Set if `state` is `weak`. */
  readonly remedy?: string;
}

/** The certificates of devices that the agent knows. `dataDir`: its data directory. */
export interface TrustStore {
  list(dataDir: string): Promise<readonly KnownCertificate[]>;
  /** Trusts a certificate from the next connection on. `thumbprint`: SHA-1 or SHA-256. False: no such certificate. */
  trust(dataDir: string, thumbprint: string): Promise<boolean>;
  /** Stops trusting a certificate. `thumbprint`: SHA-1 or SHA-256. False: no such certificate. */
  reject(dataDir: string, thumbprint: string): Promise<boolean>;
}

export interface KnownCertificate {
  /** SHA-1 in hex, as OPC UA names certificates. */
  readonly thumbprint: string;
  /** SHA-256 in hex. The operator compares it with the server's own, since SHA-1 can be forged. */
  readonly sha256: string;
  readonly subject: string;
  /** URI of the server's application; undefined: the certificate names none. */
  readonly applicationUri: string | undefined;
  readonly validFrom: string;
  readonly validTo: string;
  /** `own`: the certificate of the agent, which the server has to trust. */
  readonly state: "trusted" | "rejected" | "issuer" | "own";
  readonly path: string;
}

export interface ProbeTarget {
  /** As `url` of a source. */
  readonly url: string;
  readonly unit: number;
  /** The address, such as `hr:40` or `40041`. Data type and byte order in it have no effect. */
  readonly at: string;
  /** The value on the device's display, in the same notation: `231.4`. */
  readonly expect?: string;
  /** As the option of a source. */
  readonly replyUnit?: "same" | "any";
}

/** One interpretation of the registers at the place. */
export interface ProbeRow {
  readonly at: string;
  readonly value: number | bigint;
  /** Power of ten that scales `value` to `expect`, exactly or nearly. 0 if no power does. */
  readonly exponent: number;
  /** Whether the scaled value equals `expect` to all digits of `expect`. */
  readonly matches: boolean;
  /** Whether the scaled value is near `expect`, since the value may have changed since the display was read. */
  readonly near: boolean;
}

/** A format other than the configured one, as the configuration would have it, and the value that it gives. */
export interface OtherFormat {
  readonly format: string;
  readonly value: number;
}

/** The device that `browse` connects to, and the credentials. */
export interface BrowseTarget {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  /** As `security` of a source of this protocol. Undefined: the driver's default for temporary connections. */
  readonly security?: Readonly<Record<string, string>>;
  /** A user certificate that replaces user name and password, as `userCertificate` of a source. */
  readonly userCertificate?: Readonly<Record<string, string>>;
  /** Device certificate thumbprint, compared by a person. Trusted permanently only if `sharedDir` is given. */
  readonly trust?: string;
  /** `sharedDir` of an agent, whose certificate and trust list are used. Undefined: temporary certificates. */
  readonly sharedDir?: string;
  /** Name of that agent, for the certificate that is created if the agent has none yet. */
  readonly agent?: string;
  /** Configuration file of that agent, for the commands that messages suggest. */
  readonly configFile?: string;
  /** Parsed options of the configured source that is browsed, if any. The fields above take precedence. */
  readonly options?: Readonly<Record<string, unknown>>;
  /** The connections of running sources of this driver at the time of the call. Undefined: there are none. */
  readonly running?: () => readonly Source[];
}

export interface OfferedEndpoint {
  /** Address in the notation of the device. */
  readonly address: string;
  /** Protection of the endpoint in the terms of the configuration. */
  readonly security: string;
  /** Whether a source uses this endpoint by default. */
  readonly secure: boolean;
  /** Accepted kinds of login: `anonymous`, `username`, `certificate`. */
  readonly logins: readonly string[];
  /** Thumbprint of the endpoint's certificate. */
  readonly certificate?: string;
  /** Subject and validity of that certificate. */
  readonly subject?: string;
  readonly validFrom?: string;
  readonly validTo?: string;
  /** SHA-256 of that certificate in hex. */
  readonly sha256?: string;
  /** A password would cross the network in clear text. */
  readonly passwordInClear?: boolean;
  readonly warning?: string;
}

export interface BrowsedNode {
  readonly address: string;
  readonly name: string;
  readonly depth: number;
  readonly value?: number | bigint | boolean | string;
  /** Data type in the protocol's notation: `Double`, `Int32[]`. */
  readonly type?: string;
  /** Changes or messages per second. Set if browsing listens for values. */
  readonly perSecond?: number;
  readonly signal: PartialSignalMetadata;
  /** The tag as the configuration would contain it. */
  readonly tag: Readonly<Record<string, unknown>>;
}

/** A node that an `Explorer` listed. */
export interface ExploredNode extends BrowsedNode {
  /** Identifies the node at this explorer and at later ones for the same device. */
  readonly key: string;
  /** Names from the top down to the node. */
  readonly path: readonly string[];
  /** Whether `list` gives nodes below this one. */
  readonly branch: boolean;
}

export interface ExploredList {
  readonly nodes: readonly ExploredNode[];
  /** Number of nodes that match, of which `nodes` is a part. */
  readonly total: number;
  /** Whether more nodes may follow by themselves: the device is still being searched. */
  readonly busy: boolean;
  /** What a person should know, such as what was left out. */
  readonly notes: readonly string[];
}

export interface ExploreQuery {
  /** `key` of a branch. Undefined: the top. */
  readonly under?: string | undefined;
  /** Words that a name or an address must contain, in lower case. Empty: all nodes. */
  readonly search: readonly string[];
  /** Index of the first node wanted, and how many. */
  readonly first: number;
  readonly count: number;
}

/** A temporary connection for a person who looks for tags. It reads only, and disturbs no running source. */
export interface Explorer extends AsyncDisposable {
  /** Whether nodes have branches to open. False: `list` gives all nodes that were found so far. */
  readonly tree: boolean;
  /** Rejects with `SOURCE_*` once the connection is lost, and with `CONFIG_INVALID` for an unknown branch. */
  list(query: ExploreQuery, signal: AbortSignal): Promise<ExploredList>;
  /** Current values of listed nodes by key. A node without a value is left out. Rejects as `list` does. */
  values(keys: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, NonNullable<BrowsedNode["value"]>>>;
}

/** A search of a device that is asked for values, for as long as a person looks. Disposing it ends the search. */
export interface DeviceSearch extends AsyncDisposable {
  /** Yields as `Driver.browse` does. Called once. */
  nodes(): AsyncIterable<BrowsedNode>;
  /**
   * Reads found nodes again. Resolves within seconds with their values in this order; undefined: not read this time, or
   * no usable value. Rejects with `SOURCE_*` if the device cannot be reached.
   */
  values(nodes: readonly BrowsedNode[]): Promise<readonly BrowsedNode["value"][]>;
}

/** A connection that receives values for as long as a person looks. Disposing it closes the connection. */
export interface BrowseListener extends AsyncDisposable {
  /** Resolves with the error once the connection is lost. */
  readonly lost: Promise<Error>;
  /** What was received so far, each with its latest value. */
  nodes(): Iterable<BrowsedNode>;
}
