// The contract of a framing: it encodes requests and extracts the answers that match them.
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
