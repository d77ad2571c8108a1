// Messages between the main thread and the log thread. The columns of points and blocks are transferred, not copied.
// Each Input ID is sent once and is a number from then on.
import type { BufferStats } from "../../../core/buffer.ts";
import type { AgentError, ErrorCode } from "../../../core/errors.ts";
import type { InputId } from "../../../core/point.ts";
import type { Taken, TakeRequest } from "../blocks/block-layout.ts";
import type { BlockSettlement } from "../blocks/settlement-order.ts";
import type { Note } from "../files/disk.ts";
import type { PointColumns } from "../format/input-table.ts";
import type { StoreOptions, TimestampPair } from "../segments/environment.ts";

export type StoreRequest = { readonly now: TimestampPair } & (
  | {
      readonly kind: "append";
      /** Input IDs not sent before. Their numbers continue those already sent. */
      readonly newInputs: readonly InputId[];
      readonly group: PointColumns;
    }
  | (Omit<TakeRequest, "inputs" | "except"> & {
      readonly kind: "take";
      readonly inputs: readonly InputId[] | undefined;
      readonly except: readonly InputId[] | undefined;
    })
  | { readonly kind: "settle"; readonly done: readonly BlockSettlement[] }
  | { readonly kind: "release"; readonly blocks: readonly number[] | "all" }
  | { readonly kind: "tick" | "work" | "close" }
);

export type BareRequest = StoreRequest extends infer R ? (R extends unknown ? Omit<R, "now"> : never) : never;

export interface StoreReply extends Taken {
  readonly error:
    | { readonly code: ErrorCode | "bug"; readonly message: string; readonly hint?: string | undefined }
    | undefined;
  /** Input IDs not sent before, in the numbering of blocks. */
  readonly newInputs: readonly InputId[];
  readonly stats: BufferStats | undefined;
  readonly notes: readonly Note[];
  /** After `tick` or `work`: there is more background work. */
  readonly more: boolean;
  /** After `tick`: the last read of some segment failed. */
  readonly unread: boolean;
}

export interface StoreOpened extends StoreReply {
  /** Integration ID of the backlog, if it is not the configured one. */
  readonly foreign: string | undefined;
}

export interface StoreStart {
  readonly options: StoreOptions;
  readonly now: TimestampPair;
  /** True if this process had the folder open before. A missing or empty folder is then an error, not a new buffer. */
  readonly again: boolean;
}

/** Connection to the log, in a thread or in the same one. Calls are answered in order. */
export interface StorePort extends AsyncDisposable {
  readonly opened: StoreOpened;
  /** Why the log no longer answers. Undefined: it does. */
  readonly failure: AgentError | undefined;
  /** Rejects with `BUFFER_UNAVAILABLE` if the log has ended. The log's own errors are in the reply. */
  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply>;
}

/**
 * Resolves when the log has opened its folder or failed to, see `opened.error`. Rejects with `signal.reason`. Called
 * again after the log has ended.
 */
export type OpenPort = (start: StoreStart, signal: AbortSignal) => Promise<StorePort>;
