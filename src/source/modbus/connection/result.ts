// The contract of an exchange, which runs one request, and what its results mean.
import type { AgentError } from "../../../core/errors.ts";
import type { EpochMicros } from "../../../core/point.ts";
import { type Answer, consequenceOf, type UnitRequest } from "../config/pdu.ts";

/** The result of a request. `at`: when the answer was complete; `tookMs`: time since the request was sent. */
export type Result =
  | (Answer & { readonly at: EpochMicros; readonly tookMs: number })
  /**
   * No matching answer came in time. `mismatch`: what came instead; `received`: whether bytes came; `lateMs`: shortest
   * duration of a late answer, if any.
   */
  | {
      readonly kind: "silence";
      readonly mismatch: string | undefined;
      readonly received: boolean;
      readonly lateMs?: number | undefined;
      /** How the device closed the connection instead of answering. */
      readonly closed?: string;
    }
  /** The answer may belong to another master on the bus. `always`: no distinct request exists, so none was sent. */
  | { readonly kind: "contested"; readonly always: boolean };

export interface Exchange extends AsyncDisposable {
  /** See `Framing.resync`. */
  resync(request: UnitRequest): UnitRequest | undefined;
  /**
   * One call at a time. Resolves within `timeoutMs`, on a bus later if the answer is ambiguous. Rejects with `SOURCE_*`
   * if the connection is lost, or with `signal.reason`.
   */
  run(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result>;
  /** Why the connection is unusable. Undefined if it is usable. */
  readonly lost: AgentError | undefined;
  /** The connection was closed because a late answer could not be distinguished. On a new one, none can come. */
  readonly stale: boolean;
  readonly discarded: number;
  /** Monotonic time of the last byte. */
  readonly receivedAt: number;
}

/** Send times, by unit, of the requests that timed out since the unit last answered. */
export type TimedOut = Map<number, readonly number[]>;

/** A unit that sends its own exception is present. */
export function isAlive(result: Result): boolean {
  return result.kind === "data" || (result.kind === "exception" && consequenceOf(result.code) !== "away");
}

/** A unit that is present and not busy. */
export function isResponsive(result: Result): boolean {
  return isAlive(result) && !(result.kind === "exception" && consequenceOf(result.code) === "busy");
}

export function describeContested({ always }: Extract<Result, { kind: "contested" }>): string {
  const every = "another master on the bus reads each length that can be asked for";
  return always
    ? `${every}, so that answers could not be matched to requests`
    : "answers could not be distinguished from those to another master on the bus";
}
