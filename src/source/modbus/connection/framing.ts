// The contract of a frame format: bytes out for a request, an answer out of bytes in, and nothing taken for an answer that is none.
import type { Answer, ReadRequest, UnitRequest } from "../config/pdu.ts";

/** One request at a time, on one connection after the other: `begin`, then `receive` until it gives the answer; at the deadline `expire`, then `abandon`. */
export interface Framing {
  /**
   * A request to be asked before `request`, since the answer to this one could not be told from one to an earlier request
   * that was given up; its answer, if it comes, ends that doubt. Undefined: there is none, or nothing can be done about it.
   */
  telling(request: UnitRequest): UnitRequest | undefined;
  /** The frame of `request`, whose PDU is `pdu`. */
  begin(request: UnitRequest, pdu: Uint8Array): Uint8Array;
  /**
   * Takes bytes as they come. Gives the PDU of the answer once it is complete, which may lie in `chunk`: its unit, function,
   * byte count and exact length are those that the request asks for. What answers no request is counted and thrown away.
   * Throws `SOURCE_PROTOCOL` when what follows cannot be told apart any more: close the connection.
   */
  receive(chunk: Uint8Array): Uint8Array | undefined;
  /**
   * What to ask for instead of `request`, whose answer contains the answer to it; left out: `request`. Undefined: nothing, since
   * no answer could be told from a reply to another master.
   */
  distinct?(request: UnitRequest): UnitRequest | undefined;
  /** What came of asking for `asked`, which `distinct` gave; undefined: silence. True: the unit refuses what is more than `request`. */
  refusesMore?(asked: UnitRequest, request: UnitRequest, answer: Answer | undefined): boolean;
  /**
   * When `request` may be sent, which has waited from `since` on, by the monotonic clock: before, something else may come that
   * looks like its answer. Left out: at once.
   */
  clearAt?(request: UnitRequest, since: number): number;
  /** Until when an answer is held, to see whether another comes that contradicts it; undefined: none is. */
  readonly settlesAt?: number | undefined;
  /** At that time: the answer, or undefined where it may be that to another's request. The request is over in either case. */
  settle?(): Uint8Array | undefined;
  /**
   * After an answer with data to `asked` was given: a request whose answer confirms that it was not another's; to be made next.
   * Left out, or undefined: nothing needs to be asked.
   */
  confirmation?(asked: UnitRequest): ReadRequest | undefined;
  /** What came of asking for it; `lost`: the connection ended. False: the answer before it may have been another's. */
  isConfirmed?(outcome: "answered" | "silent" | "contested" | "lost"): boolean;
  /** Whether an answer came that is, or may be, one to an earlier request, so that another may follow it. */
  readonly holding: boolean;
  /** At the deadline: an answer that was held back because an earlier one might still have come before it. */
  expire(): Uint8Array | undefined;
  /**
   * Gives the request up. Its answer may still come and is then not taken for another's; where that cannot be told
   * apart, the result is false: close the connection.
   */
  abandon(): boolean;
  /** Replies thrown away so far: late, or not what was asked for. */
  readonly discarded: number;
  /** The last of those that answers a request that was given up: its unit, and how many there were. */
  readonly late: { readonly unit: number; readonly count: number };
  /** What was wrong with the last reply thrown away since `begin`, in words. */
  readonly mismatch: string | undefined;
}
