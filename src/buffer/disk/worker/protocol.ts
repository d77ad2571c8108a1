// What the main thread and the log thread say to each other. Points and blocks travel in columns that change hands
// without being copied; Input IDs travel once and are numbers from then on.
import type { BufferStats } from "../../../core/buffer.ts";
import type { AgentError, ErrorCode } from "../../../core/errors.ts";
import type { InputId } from "../../../core/point.ts";
import type { Taken, TakeRequest } from "../blocks/block-layout.ts";
import type { BlockSettlement } from "../blocks/settlement-order.ts";
import type { Note } from "../files/disk.ts";
import type { PointColumns } from "../format/input-table.ts";
import type { Moment, StoreOptions } from "../segments/environment.ts";

export type StoreRequest = { readonly now: Moment } & (
  | {
      readonly kind: "append";
      /** Input IDs not sent before: their numbers in `group` go on from those sent. */
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

/** A request without the time, which is put in when it is sent. */
export type BareRequest = StoreRequest extends infer R ? (R extends unknown ? Omit<R, "now"> : never) : never;

export interface StoreReply extends Taken {
  readonly error:
    | { readonly code: ErrorCode | "bug"; readonly message: string; readonly hint?: string | undefined }
    | undefined;
  /** Input IDs not told before, in the numbering of blocks. */
  readonly newInputs: readonly InputId[];
  readonly stats: BufferStats | undefined;
  readonly notes: readonly Note[];
  /** After `tick`, which works too, and `work`: there is more to do. */
  readonly more: boolean;
  /** After `tick`: there is a segment that could not be read when it was last asked for. */
  readonly unread: boolean;
}

/** The first message of the log thread. */
export interface StoreOpened extends StoreReply {
  /** Integration ID that the backlog belongs to, where it is not the configured one. */
  readonly foreign: string | undefined;
}

/** What the log thread is started with. */
export interface StoreStart {
  readonly options: StoreOptions;
  readonly now: Moment;
  /** It was open before in this process: a folder that is not there, or empty, is not made into a new buffer. */
  readonly again: boolean;
}

/** The log, wherever it runs. Calls are answered in their order. */
export interface StorePort extends AsyncDisposable {
  readonly opened: StoreOpened;
  /** Why nothing will be answered any more. Undefined: all is well. */
  readonly failure: AgentError | undefined;
  /** Rejects with `BUFFER_UNAVAILABLE` when the log is gone; errors of the log itself are in the reply. */
  call(request: StoreRequest, transfer: readonly ArrayBuffer[]): Promise<StoreReply>;
}
