// Finds the nodes whose values make any answer fail, since they are too large or cannot be decoded, so that they cost
// no other node.
import type { Logger } from "../../../core/runtime.ts";
import type { Item } from "../nodes/items.ts";
import { isTooLarge } from "../stack/failure.ts";
import type { DataValueLike } from "../types/reading.ts";
import { Unreadable } from "../types/value.ts";
import type { Monitoring } from "./monitoring.ts";

export interface UnreadableOptions {
  readonly monitoring: Pick<Monitoring, "refuse" | "items">;
  readonly log: Logger;
  /** Reads items soon. `refused` takes back those that are waiting for it. */
  readonly reread: (items: readonly Item[]) => void;
  readonly refused: (items: Iterable<Item>) => void;
  /** Asks for smaller messages. Rejects with `SOURCE_*` if the connection fails. */
  readonly shrink: (signal: AbortSignal) => Promise<void>;
}

export function unreadableNodes({ monitoring, log, reread, refused, shrink }: UnreadableOptions) {
  let isShrinkingDue = false;

  return {
    /** A notification message could not be received. Either one of its values alone is the cause, or their sum. */
    message(error: unknown): void {
      log.warn({ err: error }, "a notification of the server cannot be received");
      isShrinkingDue ||= isTooLarge(error);
      reread(monitoring.items());
    },
    /** Looks for unreadable nodes in the results of a read. Rejects with `SOURCE_*` if the connection fails. */
    async examine(read: readonly (readonly [Item, DataValueLike])[], signal: AbortSignal): Promise<void> {
      const reasons = new Map<Item, string>();
      for (const [item, { value }] of read)
        if (value?.value instanceof Unreadable) reasons.set(item, value.value.reason);
      for (const [{ address }, reason] of reasons) log.warn({ address, reason }, "a node cannot be read");
      refused(reasons.keys());
      if (reasons.size > 0) await monitoring.refuse(reasons, signal);
      else if (isShrinkingDue) await shrink(signal);
      isShrinkingDue = false;
    },
  };
}
