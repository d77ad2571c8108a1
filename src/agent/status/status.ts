// The status of the running agent, for the status page, `/api/status` and `tagferry status`.
import type { BufferStats } from "../../core/buffer.ts";
import type { ErrorCode } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { UnknownAddress } from "../../core/source.ts";
import type { InputTimeFault, RefusedInput, TagState, TimeFaults } from "../../mapping/mapping.ts";
import type { GapSummary } from "../gaps/gap.ts";
import type { ClusterStatus } from "../upkeep/cluster-delivery.ts";

/**
 * The meaning of a colour: `bad` (red): values are lost, or the operator must act. `warn` (amber): something is late or
 * missing, but may recover. `note` (neutral): for information. `good` (neutral): works.
 */
export type Level = "good" | "note" | "warn" | "bad";

export interface Overall {
  /** The worst level of the problems; `good` if they are only notes. */
  readonly level: "good" | "warn" | "bad";
  /** The headline: what is delivered, then the problems, worst first, each as a sentence. Notes are left out. */
  readonly text: string;
  /** Is data arriving? */
  readonly arriving: Fact;
  /** Is it being delivered? */
  readonly delivering: Fact;
  /** What must the operator do? Worst first. */
  readonly problems: readonly Problem[];
}

/** An answer in a few words, and the figures behind it. */
export interface Fact {
  readonly level: Level;
  readonly text: string;
  readonly detail: string;
}

export interface Problem {
  readonly level: "note" | "warn" | "bad";
  /** What is wrong, as a sentence of the headline without its stop: `2 points refused`. */
  readonly text: string;
  /** What is affected, at most 20 of `count`. */
  readonly items: readonly ProblemItem[];
  readonly count: number;
  /** Arguments of `tagferry` for a command that shows more or repairs it. */
  readonly command?: readonly string[];
}

export interface ProblemItem {
  /** The error, or what is affected. */
  readonly detail?: string;
  readonly remedy?: string;
  /** The source that has the problem. */
  readonly source?: string;
  /** When values were not recorded. Without `to`, they still are not. */
  readonly gap?: { readonly from: EpochMicros; readonly to?: EpochMicros };
}

/** A snapshot as plain data. `/api/status` answers its JSON. */
export interface Status {
  readonly time: EpochMicros;
  readonly agent: AgentStatus;
  /** A summary of the rest in one line. */
  readonly overall: Overall;
  readonly sources: readonly SourceStatus[];
  readonly tags: readonly TagStatus[];
  readonly buffer: BufferStats & {
    readonly maxBytes: number;
    readonly maxAgeMs: number;
  };
  readonly upload: UploadStatus;
  /** Left out without a cluster in the configuration. */
  readonly cluster?: ClusterStatus;
  /** Numbers of intervals in which tags were not recorded; `/api/gaps` lists them. */
  readonly gaps: GapSummary;
  /** Refused inputs and addresses, whose readings are not stored. At most 100 of each source. */
  readonly refusedInputs: readonly RefusedInputStatus[];
  /** Inputs whose device clock stands still or whose times repeat often. */
  readonly timeFaults: TimeFaultsStatus;
  /** Problems that the operator should know or fix, worst first. */
  readonly warnings: readonly Warning[];
}

export interface StatusPart {
  readonly status: Omit<Status, "tags">;
  readonly tags: {
    /** Number of all tags. */
    readonly total: number;
    readonly first: number;
    readonly rows: readonly TagStatus[];
  };
}

export interface StatusSample extends Pick<Status, "time" | "buffer" | "upload"> {
  /** Calls `each` with the last value of each of the first `most` tags. Allocates no object for a tag. */
  readonly values: (most: number, each: (input: string, value: number | undefined) => void) => void;
}

export interface AgentStatus {
  readonly name: string;
  readonly version: string;
  readonly config: ConfigStatus;
  readonly startedAt: EpochMicros;
  readonly uptimeMs: number;
}

/** The configuration in effect. */
export interface ConfigStatus {
  /** See `Config.checksum`. */
  readonly checksum: string;
  /** Time of the start or of the last successful reload. */
  readonly loadedAt: EpochMicros;
  /** Left out unless the last reload failed; the configuration before stays in effect. */
  readonly failedReload?: { readonly at: EpochMicros; readonly reason: string };
  /** Sections that the last reload changed and that take effect only after a restart. */
  readonly needRestart: readonly string[];
}

export interface RefusedInputStatus extends Omit<RefusedInput, "tag"> {
  readonly source: string;
}

export interface TimeFaultStatus extends Omit<InputTimeFault, "tag"> {
  readonly source: string;
}

/** Number of inputs with each fault, and the first 100 of each source. */
export interface TimeFaultsStatus extends Omit<TimeFaults, "first"> {
  readonly first: readonly TimeFaultStatus[];
}

export interface Warning {
  /** `warn`: nothing is lost. `error`: data was lost, or the operator must act. */
  readonly level: "warn" | "error";
  /** The same in a few words, for the headline. Left out: the warning is not urgent, or has no shorter form. */
  readonly title?: string;
  readonly message: string;
  readonly remedy?: string;
  /** See `Problem`. */
  readonly command?: readonly string[];
}

/**
 * `opening`: first attempt. `waiting`: the last attempt failed; the next one follows automatically. `standby`: another
 * agent of the cluster reads the source, or none does at present.
 */
export type SourceState = "opening" | "online" | "waiting" | "stopped" | "standby";

export interface SourceStatus {
  readonly name: string;
  /** See `Driver.type`. */
  readonly type: string;
  /** Address without secrets. */
  readonly url?: string;
  readonly state: SourceState;
  /** Start of this state. */
  readonly since: EpochMicros;
  /** The last failure and its remedy; left out while there is none. */
  readonly error?: string;
  readonly remedy?: string;
  /** Left out if the error has no code. */
  readonly code?: ErrorCode;
  readonly tags: number;
  /** Since the agent started. */
  readonly readings: number;
  readonly points: number;
  readonly reconnects: number;
  /** Average over the last 10 s. */
  readonly readingsPerSecond: number;
  /** When the last reading arrived. Left out before the first one. */
  readonly lastReading?: EpochMicros;
  /** Connection details from the driver (`Source.details`). */
  readonly details: Readonly<Record<string, string | number>>;
  /** Addresses that arrive but belong to no tag (`Source.unknown`). Left out if there are none. */
  readonly unknown?: readonly UnknownAddress[];
}

/** A tag as its mapping has it. Several tags have the same Input ID if it is shared. What is unknown is left out. */
export interface TagStatus
  extends Pick<TagState, "input" | "address" | "readings">,
    Partial<Pick<TagState, "value" | "text" | "unit" | "quality" | "reason" | "time">> {
  readonly source: string;
  /** Index of the tag in its source. */
  readonly tag: number;
  /** Readings without a point, since they failed or were refused. */
  readonly failures: number;
}

/** `retrying`: the service is unreachable. `held`: it rejects the credentials. `standby`: no lease in the cluster. */
export type UploadState = "delivering" | "retrying" | "held" | "stopped" | "standby";

export interface UploadStatus {
  readonly state: UploadState;
  readonly since: EpochMicros;
  readonly url: string;
  readonly integration: string;
  readonly error?: string;
  readonly remedy?: string;
  /** Delay of fresh points: age of the newest point that the service has. Left out before the first delivery. */
  readonly lagMs?: number;
  /** Durable points that are not delivered. */
  readonly backlogPoints: number;
  readonly backlog: BacklogStatus;
  /** `integration.insert` requests and delivered points since the agent started. */
  readonly requests: number;
  readonly points: number;
  /** Points that the service refused permanently since the agent started. */
  readonly refusedPoints: number;
  /** Inputs that the service does not accept, so their points wait in the buffer. Left out without delivery. */
  readonly parkedInputs?: { readonly refused: number; readonly unconfirmed: number };
  /** Averages over the last minute. */
  readonly pointsPerRequest: number;
  readonly bytesPerRequest: number;
  /** Used share of the permitted requests in the last minute, 0 to 1. */
  readonly budgetShare: number;
  /** `service.interval`. Requests are this far apart while one carries everything. */
  readonly intervalMs: number;
  /** Bytes exchanged with the service since the agent started. Left out without delivery. */
  readonly traffic?: { readonly sentBytes: number; readonly receivedBytes: number; readonly bytesPerMonth?: number };
  /** Left out without delivery. */
  readonly signals?: SignalsStatus;
}

/** `none`: only points in transit wait. `unknown`: not measured yet, or nothing is delivered. */
export interface BacklogStatus {
  readonly trend: "none" | "unknown" | "growing" | "steady" | "shrinking";
  /** Text for the operator: how the backlog develops. */
  readonly text: string;
  /** Time until it is gone, at the rate of the last minute. Left out if it cannot be estimated. */
  readonly drainMs?: number;
  /** Time until the buffer drops points, at the rate at which it grew in the last minute. Left out if it does not grow. */
  readonly fullMs?: number;
}

export interface SignalsStatus {
  readonly known: number;
  /** Signals whose metadata is not saved yet. */
  readonly pending: number;
  readonly saved: number;
  /** Time of the last complete comparison with the service. Left out before the first one, like the fields below. */
  readonly checkedAt?: EpochMicros;
  /** Signals that were lost or changed at the service since the agent started, and were saved again. */
  readonly lost?: number;
  readonly changed?: number;
  /** Number of Input IDs at the service that the configuration does not have, and the first 20 of them. */
  readonly unconfigured?: number;
  readonly unconfiguredInputs?: readonly string[];
  /** Items created or updated since the agent started. Left out if none are published. */
  readonly published?: number;
}
