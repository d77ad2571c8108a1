// What the running agent says about itself: one snapshot for the status page, `/api/status` and `tagferry status`.
import type { BufferStats } from "../../core/buffer.ts";
import type { ErrorCode } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Quality, UnknownAddress } from "../../core/source.ts";
import type { InputTimeFault } from "../../mapping/mapping.ts";
import type { GapSummary } from "../gaps/gap.ts";
import type { ClusterStatus } from "../upkeep/cluster-delivery.ts";

export interface Overall {
  /** `good`: nothing to do. `warn`: something is late or missing, and may come right by itself. `bad`: values are lost or refused, or a person is needed. */
  readonly level: "good" | "warn" | "bad";
  /** `all well`, or what is not, worst first and separated by commas. */
  readonly text: string;
}

/** A snapshot, taken when asked. Plain data: what JSON makes of it is what `/api/status` answers. */
export interface Status {
  readonly time: EpochMicros;
  readonly agent: AgentStatus;
  /** All of what follows in one line. */
  readonly overall: Overall;
  readonly sources: readonly SourceStatus[];
  readonly tags: readonly TagStatus[];
  readonly buffer: BufferStats & {
    /** Configured bounds, to show how full it is. */
    readonly maxBytes: number;
    readonly maxAgeMs: number;
  };
  readonly upload: UploadStatus;
  /** Left out where the configuration has none. */
  readonly cluster?: ClusterStatus;
  /** How many intervals there are in which tags were not recorded; which, `/api/gaps` tells. */
  readonly gaps: GapSummary;
  /** Inputs and addresses that were refused: their readings are not stored. At most 100 of each source. */
  readonly refusedInputs: readonly RefusedInputStatus[];
  /** Inputs whose device clock stands still or whose times repeat often. */
  readonly timeFaults: TimeFaultsStatus;
  /** What an operator should know or mend, worst first. Each a sentence for people. */
  readonly warnings: readonly Warning[];
}

/** A status with some of its tags. */
export interface StatusPart {
  readonly status: Omit<Status, "tags">;
  readonly tags: {
    /** Of all tags. */
    readonly total: number;
    /** Index of the first row. */
    readonly first: number;
    readonly rows: readonly TagStatus[];
  };
}

/** What is plotted of a status. */
export interface StatusSample extends Pick<Status, "time" | "buffer" | "upload"> {
  /** Calls `each` with the last value of each tag, of the first `most` of them. Makes no object for a tag. */
  readonly values: (most: number, each: (input: string, value: number | undefined) => void) => void;
}

export interface AgentStatus {
  readonly name: string;
  readonly version: string;
  readonly startedAt: EpochMicros;
  readonly uptimeMs: number;
}

export interface RefusedInputStatus {
  readonly source: string;
  /** The Input ID, or what was made of the template where it is none. */
  readonly input: string;
  /** The address whose readings are not stored; empty while nothing was read. */
  readonly address: string;
  /** Who feeds the Input ID; left out where there is no such Input ID. */
  readonly fedBy?: { readonly source: string; readonly address: string };
  readonly reason: string;
  readonly remedy: string;
  readonly readings: number;
}

export interface TimeFaultStatus extends Omit<InputTimeFault, "tag"> {
  readonly source: string;
}

/** How many inputs have each fault, and the first 100 of each source. */
export interface TimeFaultsStatus {
  readonly standing: number;
  readonly repeats: number;
  readonly first: readonly TimeFaultStatus[];
}

export interface Warning {
  /** `warn`: nothing is lost. `error`: data was lost or a person is needed. */
  readonly level: "warn" | "error";
  readonly message: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** `opening`: first attempt. `waiting`: the last attempt failed, the next one comes by itself. */
export type SourceState = "opening" | "online" | "waiting" | "stopped";

export interface SourceStatus {
  readonly name: string;
  /** `Driver.type`. */
  readonly type: string;
  /** Where it connects, without secrets. */
  readonly url?: string;
  readonly state: SourceState;
  /** Since when it has been in this state. */
  readonly since: EpochMicros;
  /** The last failure and what to do about it; left out while all is well. */
  readonly error?: string;
  readonly remedy?: string;
  /** Code of the error; left out where it has none. */
  readonly code?: ErrorCode;
  /** Number of configured tags. */
  readonly tags: number;
  /** Since the agent started. */
  readonly readings: number;
  readonly points: number;
  readonly reconnects: number;
  /** Readings a second over the last 10 s. */
  readonly readingsPerSecond: number;
  /** What the driver tells of its connection (`Source.details`). */
  readonly details: Readonly<Record<string, string | number>>;
  /** What arrives and no tag wants (`Source.unknown`); left out where there is none. */
  readonly unknown?: readonly UnknownAddress[];
}

export interface TagStatus {
  readonly source: string;
  /** Index of the tag within its source. */
  readonly tag: number;
  /** The Input ID; the template as configured while nothing has filled it. Several tags have one where it is shared. */
  readonly input: string;
  /** In the driver's notation. Empty while nothing was read and the driver names none. */
  readonly address: string;
  /** The last mapped value, in the signal's unit. Left out: there is none yet. */
  readonly value?: number;
  /** The state's name where the signal is an enumeration. */
  readonly text?: string;
  readonly unit?: string;
  /** Left out while nothing was read. */
  readonly quality?: Quality;
  /** Why there is no value, or why its quality is not good. */
  readonly reason?: string;
  /** Time of the last reading. */
  readonly time?: EpochMicros;
  /** Readings since the agent started, and those of them that gave no point because they failed or were refused. */
  readonly readings: number;
  readonly failures: number;
}

/** `delivering`: requests succeed, or there is nothing to send. `retrying`: the service cannot be reached. `held`: it refuses the credentials; a person is needed. `standby`: this agent is in a cluster and has not the turn to deliver. */
export type UploadState = "delivering" | "retrying" | "held" | "stopped" | "standby";

export interface UploadStatus {
  readonly state: UploadState;
  readonly since: EpochMicros;
  /** Where it delivers to, and as whom. */
  readonly url: string;
  readonly integration: string;
  readonly error?: string;
  readonly remedy?: string;
  /** How late fresh points are now: age of the newest point that the service has. Left out before the first delivery. */
  readonly lagMs?: number;
  /** Points that are durable and not delivered. */
  readonly backlogPoints: number;
  readonly backlog: BacklogStatus;
  /** `integration.insert` requests and points delivered since the agent started. */
  readonly requests: number;
  readonly points: number;
  /** Points the service refused for good since the agent started. */
  readonly refusedPoints: number;
  /** Inputs that the service does not take; their points wait in the buffer. Left out while there is no delivery. */
  readonly parkedInputs?: { readonly refused: number; readonly unconfirmed: number };
  /** Averages over the last minute. */
  readonly pointsPerRequest: number;
  readonly bytesPerRequest: number;
  /** Share of the permitted requests that were used in the last minute, 0 to 1. */
  readonly budgetShare: number;
  /** Left out while there is no delivery. */
  readonly signals?: SignalsStatus;
}

/** `none`: nothing waits but what is on its way. `steady`: it neither grows nor shrinks. `unknown`: not measured yet, or nothing is delivered. */
export interface BacklogStatus {
  readonly trend: "none" | "unknown" | "growing" | "steady" | "shrinking";
  /** For people: what becomes of the backlog, in a few words. */
  readonly text: string;
  /** Until it is gone, at the rate by which it shrank in the last minute. Left out where that cannot be estimated. */
  readonly drainMs?: number;
}

export interface SignalsStatus {
  readonly known: number;
  /** Signals whose metadata are not saved yet. */
  readonly pending: number;
  readonly saved: number;
  /** When all of them were compared with the service last; left out: not yet, and with it what follows. */
  readonly checkedAt?: EpochMicros;
  /** Found lost or changed at the service since the agent started, and saved again. */
  readonly lost?: number;
  readonly changed?: number;
  /** Input IDs that the service has and the configuration has not, and the first 20 of them. */
  readonly unconfigured?: number;
  readonly unconfiguredInputs?: readonly string[];
  /** Items created or updated since the agent started; left out where none are published. */
  readonly published?: number;
}
