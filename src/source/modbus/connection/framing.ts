// The contracts of a connection. A frame format: bytes out for a request, an answer out of bytes in, and nothing taken for an
// answer that is none. An exchange: one request and its answer.
import type { AgentError } from "../../../core/errors.ts";
import type { EpochMicros } from "../../../core/point.ts";
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
  /**
   * What came of asking for it; `closed`: the connection ended over it; `lost`: the connection ended before. False: the answer
   * before it may have been another's.
   */
  isConfirmed?(outcome: "answered" | "silent" | "contested" | "closed" | "lost"): boolean;
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
  /** The last late reply to a request that timed out: its unit, and the number of such replies. */
  readonly late: { readonly unit: number; readonly count: number };
  /** What was wrong with the last reply thrown away since `begin`, in words. */
  readonly mismatch: string | undefined;
}

/** A new array with the bytes of both. */
export function concatBytes(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** A new array: what `slice` of a `Buffer` gives still is its memory. */
export function copyBytes(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

/** What became of a request. `at`: when the answer was complete; `tookMs`: how long after the request was sent. */
export type Result =
  | (Answer & { readonly at: EpochMicros; readonly tookMs: number })
  /**
   * Nothing that could be an answer came in time. `mismatch`: what came instead; `heard`: anything at all came; `lateMs`: how
   * long the unit took at least for answers that came too late, where any came.
   */
  | {
      readonly kind: "silence";
      readonly mismatch: string | undefined;
      readonly heard: boolean;
      readonly lateMs?: number | undefined;
      /** That the device closed the connection instead of answering, in words. */
      readonly closed?: string;
    }
  /** On a bus: what came, if anything did, cannot be told from replies to another master. `always`: nothing was asked, since nothing could be. */
  | { readonly kind: "contested"; readonly always: boolean };

export interface Exchange extends AsyncDisposable {
  /** As `Framing.telling`. */
  telling(request: UnitRequest): UnitRequest | undefined;
  /**
   * Called for one request at a time. Resolves with its result after `timeoutMs` at the latest, on a bus later where the
   * answer may be that to another request, of ours or of another master; rejects with `SOURCE_*` when the connection is lost, or with `signal.reason`.
   */
  run(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result>;
  /** Why the connection is of no use any more; undefined: it is. */
  readonly lost: AgentError | undefined;
  /** We closed it, because a late answer could not be told from a fresh one: a new connection does not have that fault. */
  readonly stale: boolean;
  /** Replies thrown away: late, or not what was asked for. */
  readonly discarded: number;
  /** When the last byte came, on the monotonic clock. */
  readonly heardAt: number;
}

/** How a line comes to rest after a time-out, before it is used again. In milliseconds. */
export interface LineRest {
  /** Silence that has to pass. */
  readonly quietMs: number;
  /** Time that has to pass at least. */
  readonly guardMs: number;
}

/** By unit: send times of the requests that timed out since the unit last answered. */
export type GivenUp = Map<number, readonly number[]>;
