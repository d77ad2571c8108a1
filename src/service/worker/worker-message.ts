// What the thread with the sockets and the thread with the store say to each other.
import type { ErrorCode } from "../../core/errors.ts";
import type { RpcInput } from "../method/dispatch.ts";

export type WorkerRequest =
  | { readonly kind: "call"; readonly number: number; readonly input: RpcInput }
  /** Delete points older than this, microseconds since the epoch. Answered without a body. */
  | { readonly kind: "expire"; readonly number: number; readonly before: number }
  | { readonly kind: "close" };

export type WorkerReply =
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly code: ErrorCode | undefined; readonly message: string }
  | {
      readonly kind: "answer";
      readonly number: number;
      readonly body: Uint8Array<ArrayBuffer> | undefined;
      readonly failure: string | undefined;
    }
  | { readonly kind: "closed" };
