import type { InputId, SignalId } from "./point.ts";

export interface Frame {
  /** `id` of the JSON-RPC request in `body`. */
  readonly id: number;
  /** The whole JSON-RPC request in UTF-8. May be a view of a reused buffer, unchanged until `send` resolves. */
  readonly body: Uint8Array;
  readonly points: number;
  readonly inputs: readonly InputId[];
}

/** An input that the service refused, with the reason it gave. */
export interface Refusal {
  readonly input: InputId;
  readonly reason: string;
}

export type Outcome =
  /** All inputs of the frame are stored. `signals` contains at least those whose identifier is new or has changed. */
  | { readonly kind: "accepted"; readonly signals: ReadonlyMap<InputId, SignalId> }
  /** JSON-RPC error −32021, or a result that names some inputs. Whether the other inputs are stored is unknown. */
  | { readonly kind: "partial"; readonly accepted: readonly InputId[]; readonly refused: readonly Refusal[] }
  /** A result that names no input of the frame, so no point is known to be stored. */
  | { readonly kind: "unconfirmed" }
  /** −32600, −32602, −32001, HTTP 400 and 422: bisect. `inputs` are those that the service named; may be empty. */
  | { readonly kind: "refused"; readonly code: number; readonly reason: string; readonly inputs: readonly InputId[] }
  /** HTTP 413: halve the frame size and remember the limit. */
  | { readonly kind: "tooLarge" }
  /**
   * HTTP 429, −32015, or a failure with `Retry-After`. `isServerError`, `isCut`: as of `unavailable`, in case this request
   * never gets another answer.
   */
  | {
      readonly kind: "throttled";
      readonly retryAfterMs: number;
      readonly isServerError?: boolean;
      readonly isCut?: boolean;
    }
  /** HTTP 401, 403, 3xx, −32003: pause delivery, renew the credentials and report the problem. */
  | { readonly kind: "unauthorized"; readonly reason: string; readonly hint?: string }
  /**
   * It is unknown whether the points are stored; the caller repeats the request with back-off. `isServerError`: the
   * service answered with HTTP 5xx or a JSON-RPC error, so a point of the request may be the cause. `isCut`: a long
   * request began and got no answer, or HTTP 408 or 504, so its length may be the cause.
   */
  | {
      readonly kind: "unavailable";
      readonly cause: Error;
      readonly isServerError?: boolean;
      readonly isCut?: boolean;
    };

/** The destination of points. Failures are outcomes, not exceptions; retries are the caller's decision. */
export interface Sink extends AsyncDisposable {
  /** Resolves with the outcome; rejects with `signal.reason` only. */
  send(frame: Frame, signal: AbortSignal, turn?: RequestTurn): Promise<Outcome>;
  /** Whether a connection can be established at present. Sends nothing over it. Undefined: the sink cannot find out. */
  connects?(signal: AbortSignal): Promise<boolean>;
}

/** Admits requests of any method. Used if several agents share the rate limit of the service. */
export interface RequestGate {
  /** Called in the turn of a method. Resolves when its request may start; rejects with `signal.reason`. */
  pass(signal: AbortSignal): Promise<void>;
  /** Whether a request may start now. Checked just before its first byte is written. */
  readonly isOpen: boolean;
  /** Called after the answer, or when no request was sent. */
  done?(): void;
}

export interface RequestTurn {
  /** Called before the first byte is written. False: the turn is over and the request must not be sent. */
  start(): boolean;
}
