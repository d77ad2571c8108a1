// Takes points from the buffer and has the service store them, whatever network and service do meanwhile.
import type { BufferReader } from "../core/buffer.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { EpochMicros, InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Sink } from "../core/sink.ts";
import type { Catalog } from "./catalog.ts";
import type { ServiceOptions } from "./options.ts";

export interface UploaderParts {
  readonly options: ServiceOptions;
  /** Owned by the caller and disposed after the uploader. */
  readonly reader: BufferReader;
  /** Owned by the caller and disposed after the uploader. */
  readonly catalog: Catalog;
  /** Folder for what the uploader must remember (rejects, limits, tokens); made when missing. */
  readonly stateDir: string;
  /** `agent.name` and version, for User-Agent. */
  readonly agent: string;
  /** Undefined: the service of `options`. Then owned by the uploader, else by the caller. */
  readonly sink?: Sink;
}

/**
 * `idle`: nothing to send. `sending`: requests go out. `throttled`: the service asked for patience. `holding`: it refuses
 * us or what we send, a person is needed, nothing is dropped. `unreachable`: no valid answer, tried again for ever.
 */
export type UploadState = "idle" | "sending" | "throttled" | "holding" | "unreachable";

export interface UploadFailure {
  readonly code: ErrorCode;
  /** What happened, for people. */
  readonly message: string;
  /** What to do about it. */
  readonly hint: string;
  readonly at: EpochMicros;
}

/** What an operator wants to know. All counts are since the start of the process unless said otherwise. */
export interface UploadStatus {
  readonly state: UploadState;
  /** When `state` was entered. */
  readonly since: EpochMicros;
  /** The last failure; `current` while it stands, kept afterwards. */
  readonly lastError: (UploadFailure & { readonly current: boolean }) | undefined;
  readonly lastSuccess: EpochMicros | undefined;
  /** Milliseconds that fresh points took from their append to acceptance, or have waited by now. */
  readonly lagMs: number;
  readonly requests: { readonly started: number; readonly accepted: number; readonly failed: number };
  /** Points the service has accepted. */
  readonly points: number;
  readonly bytes: number;
  /** Of the last accepted request; 0: none yet. */
  readonly pointsPerRequest: number;
  readonly bytesPerRequest: number;
  /** Points the service refused for good, since the data directory exists. */
  readonly rejected: number;
  /** Share of the requests that the limits allow which were started within the last minute, 0 to 1. */
  readonly budgetShare: number;
  /** Points taken from the buffer and not settled. */
  readonly inFlight: number;
  readonly signals: {
    readonly known: number;
    /** Metadata that waits to be saved. */
    readonly pending: number;
    readonly saved: number;
    /** Metadata that the service would not take, at most 100 of them; their points are sent all the same. */
    readonly refused: readonly { readonly input: InputId; readonly reason: string }[];
  };
}

export interface Uploader extends AsyncDisposable {
  /**
   * Delivers until `signal` aborts, then gives the request in flight 5 s, settles what was accepted, releases the rest to
   * the buffer and resolves. Rejects only with `BUFFER_*`. Called once.
   */
  run(signal: AbortSignal): Promise<void>;
  status(): UploadStatus;
}

/** Resolves without a word to the service: whether it answers shows in `status`. */
export declare function openUploader(parts: UploaderParts, runtime: Runtime, signal: AbortSignal): Promise<Uploader>;
