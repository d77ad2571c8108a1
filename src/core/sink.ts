// The destination of points and its possible outcomes. An outcome is a value, never an exception.
import type { InputId, SignalId } from "./point.ts";

/** One request, ready to go out. */
export interface Frame {
  /** `id` of the JSON-RPC request in `body`. */
  readonly id: number;
  /** The whole JSON-RPC request in UTF-8. May be a view of a reused buffer: it is not touched until `send` resolves. */
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
  /** All inputs of the frame are stored. `signals`: at least those of inputs whose signal is not known yet, or was another. */
  | { readonly kind: "accepted"; readonly signals: ReadonlyMap<InputId, SignalId> }
  /**
   * JSON-RPC error −32021, or a result that names some of the inputs. Inputs that are neither `accepted` nor `refused` may
   * be stored or not.
   */
  | { readonly kind: "partial"; readonly accepted: readonly InputId[]; readonly refused: readonly Refusal[] }
  /** A result that names no input of the frame, so no point is known to be stored. */
  | { readonly kind: "unconfirmed" }
  /** −32600, −32602, −32001, HTTP 400 and 422: bisect. `inputs` are those the service named, none if it named none. */
  | { readonly kind: "refused"; readonly code: number; readonly reason: string; readonly inputs: readonly InputId[] }
  /** HTTP 413: send and remember half the size. */
  | { readonly kind: "tooLarge" }
  /** HTTP 429, −32015. */
  | { readonly kind: "throttled"; readonly retryAfterMs: number }
  /** HTTP 401, 403, 3xx, −32003: pause delivery, renew credentials, report it. */
  | { readonly kind: "unauthorized"; readonly reason: string; readonly hint?: string }
  /**
   * Unknown whether the points are stored: the caller repeats the request with back-off. `isServerError`: the service answered
   * with HTTP 5xx or a JSON-RPC error, so a point of the request may be the cause.
   */
  | { readonly kind: "unavailable"; readonly cause: Error; readonly isServerError?: boolean };

/**
 * The destination of points. Failures of the network or the service are outcomes, not exceptions. Retries are the caller's
 * decision.
 */
export interface Sink extends AsyncDisposable {
  /** Resolves with the outcome; rejects with `signal.reason` only. */
  send(frame: Frame, signal: AbortSignal, turn?: RequestTurn): Promise<Outcome>;
  /** Resolves with whether a connection can be established now, over which nothing is sent. Undefined: the sink cannot find out. */
  connects?(signal: AbortSignal): Promise<boolean>;
}

/** Decides when a request of any method may go out, where several agents share the rate that the service permits. */
export interface RequestGate {
  /** Called in the turn of a method, before its request. Resolves when the request may start; rejects with `signal.reason`. */
  pass(signal: AbortSignal): Promise<void>;
  /** Whether a request may start now. Read where its first byte is written. */
  readonly isOpen: boolean;
}

/** The turn of one request. */
export interface RequestTurn {
  /** Called where the first byte of the request is written. False: the request must not be sent, as its turn is over. */
  start(): boolean;
}
