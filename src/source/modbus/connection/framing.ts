// Contracts: a framing encodes requests and extracts matching answers; an exchange runs one request. Meanings of results.
import type { AgentError } from "../../../core/errors.ts";
import type { EpochMicros } from "../../../core/point.ts";
import type { Answer, ReadRequest, UnitRequest } from "../config/pdu.ts";

/**
 * One request at a time: `begin`, then `receive` until it returns the answer. At the deadline `expire`, then `abandon`.
 */
export interface Framing {
  /** A request to resynchronise with, if the answer to `request` could be mistaken for a late one. Undefined if none helps. */
  resync(request: UnitRequest): UnitRequest | undefined;
  /** The frame of `request`, whose PDU is `pdu`. */
  begin(request: UnitRequest, pdu: Uint8Array): Uint8Array;
  /**
   * Processes received bytes. Returns the PDU of the answer once complete; it may be a view of `chunk`. Its unit,
   * function, byte count and length match the request. Other replies are counted and discarded. Throws
   * `SOURCE_PROTOCOL` if frames can no longer be separated: close the connection.
   */
  receive(chunk: Uint8Array): Uint8Array | undefined;
  /** A request whose answer contains that to `request`. Undefined if any could be a reply to another master. */
  distinct?(request: UnitRequest): UnitRequest | undefined;
  /** Records the `answer` to `sent` (undefined: silence). True if the unit rejects more than `request`. */
  refusesMore?(sent: UnitRequest, request: UnitRequest, answer: Answer | undefined): boolean;
  /** Monotonic time when `request`, waiting since `since`, may be sent without confusion. Default: at once. */
  clearAt?(request: UnitRequest, since: number): number;
  /** Time until which an answer is held, in case another contradicts it. Undefined if none is held. */
  readonly settlesAt?: number | undefined;
  /** Ends the request at `settlesAt`. Undefined if the answer may belong to another master. */
  settle?(): Uint8Array | undefined;
  /** A request to send next, whose answer confirms the data received for `sent`. Undefined if none is needed. */
  confirmation?(sent: UnitRequest): ReadRequest | undefined;
  /** Reports the confirmation. `closed`: the connection ended during it; `lost`: before. False: reject the answer. */
  isConfirmed?(outcome: "answered" | "silent" | "contested" | "closed" | "lost"): boolean;
  /** Whether a received answer may be late, so that another one may follow. */
  readonly holding: boolean;
  /** At the deadline, returns the answer that was held because it might be late. */
  expire(): Uint8Array | undefined;
  /** Abandons the request. False if a late answer could be mistaken for another: close the connection. */
  abandon(): boolean;
  /** Replies discarded so far: late or mismatched. */
  readonly discarded: number;
  /** The last late reply to a request that timed out: its unit, and the number of such replies. */
  readonly late: { readonly unit: number; readonly count: number };
  /** Why the last reply since `begin` was discarded. */
  readonly mismatch: string | undefined;
}

export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** A real copy: `slice` of a `Buffer` shares memory. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

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

/** How to wait for a line to become quiet after a time-out. */
export interface LineRest {
  /** Required silence. */
  readonly quietMs: number;
  /** Minimum wait. */
  readonly guardMs: number;
}

/** Send times, by unit, of the requests that timed out since the unit last answered. */
export type TimedOut = Map<number, readonly number[]>;

/**
 * `unsupported`: the table or address does not exist; retry rarely. `split`: part of the block does not exist, or it is
 * too long. `busy`: retry soon. `fault`: no value this time. `away`: a gateway cannot reach the unit.
 */
export type Consequence = "unsupported" | "split" | "busy" | "fault" | "away";

const known: Readonly<Record<number, { readonly meaning: string; readonly consequence: Consequence }>> = {
  1: { meaning: "illegal function: the device does not have this table", consequence: "unsupported" },
  2: { meaning: "illegal data address: the device does not have this address", consequence: "split" },
  3: { meaning: "illegal data value: the device does not allow so many at once", consequence: "split" },
  4: { meaning: "server device failure", consequence: "fault" },
  5: { meaning: "acknowledge: the device needs longer", consequence: "busy" },
  6: { meaning: "server device busy", consequence: "busy" },
  7: { meaning: "negative acknowledge", consequence: "fault" },
  8: { meaning: "memory parity error in the device", consequence: "fault" },
  10: { meaning: "gateway path unavailable: the gateway is misconfigured or overloaded", consequence: "away" },
  11: { meaning: "gateway target device failed to respond", consequence: "away" },
};

export function consequenceOf(code: number): Consequence {
  return known[code]?.consequence ?? "fault";
}

/** Example: `exception 2: illegal data address …`. */
export function describeException(code: number): string {
  return `exception ${code}: ${known[code]?.meaning ?? "a code of the vendor's own"}`;
}

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
