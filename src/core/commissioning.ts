// What a driver offers to the commands that set up and check an agent.
import type { PartialSignalMetadata } from "./signal.ts";

/** Examples of a source of this protocol, for the file that `init` writes, for help and for messages. */
export interface DriverExample {
  /** Name of the protocol: `OPC UA`. */
  readonly protocol: string;
  /** What a source reads: `an OPC UA server`. */
  readonly device: string;
  /** Addresses, with `host` for the name of a machine: `opc.tcp://host:4840`. Empty: a source has no address. */
  readonly addresses: readonly string[];
  /** Entries of `devices`, where the driver has devices, else of `tags`; each one line of YAML. */
  readonly entries: readonly string[];
}

/** One finding about the protection of a source. */
export interface SecurityFinding {
  readonly state: "good" | "weak";
  readonly message: string;
  /** What to write or to do instead, where it is weak. */
  readonly remedy?: string;
}

/** The certificates of devices that the agent knows. `dataDir`: its data directory. */
export interface TrustStore {
  list(dataDir: string): Promise<readonly KnownCertificate[]>;
  /** Trusts a certificate from the next connection on. `thumbprint`: SHA-1 or SHA-256. False: there is no such certificate. */
  trust(dataDir: string, thumbprint: string): Promise<boolean>;
  /** No longer trusts a certificate. `thumbprint`: SHA-1 or SHA-256. False: there is no such certificate. */
  reject(dataDir: string, thumbprint: string): Promise<boolean>;
}

/** A certificate in the data directory of an agent. */
export interface KnownCertificate {
  /** SHA-1 in hex, as OPC UA names certificates. */
  readonly thumbprint: string;
  /** In hex: what to compare with the server's own, since SHA-1 can be forged. */
  readonly sha256: string;
  readonly subject: string;
  /** URI of the server's application; undefined: the certificate names none. */
  readonly applicationUri: string | undefined;
  readonly validFrom: string;
  readonly validTo: string;
  /** `own`: the agent's, which the server has to trust. */
  readonly state: "trusted" | "rejected" | "issuer" | "own";
  /** Where it is. */
  readonly path: string;
}

/** Where `probe` looks. */
export interface ProbeTarget {
  /** As `url` of a source. */
  readonly url: string;
  readonly unit: number;
  /** `hr:40`, `40041`: type and order are what is looked for, and of no effect. */
  readonly at: string;
  /** What the device's display shows, as it is written there: `231.4`. */
  readonly expect?: string;
  /** As the option of a source. */
  readonly replyUnit?: "same" | "any";
}

/** One way to read the place. */
export interface ProbeRow {
  readonly at: string;
  readonly value: number | bigint;
  /** Power of ten that makes it what the display shows, or comes near to it; 0 without either. */
  readonly exponent: number;
  /** Whether it is what the display shows, as exactly as that shows it. */
  readonly matches: boolean;
  /** Whether it comes near to what the display showed: values move. */
  readonly near: boolean;
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
  /** Whether a source uses it without a setting in the configuration. */
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
