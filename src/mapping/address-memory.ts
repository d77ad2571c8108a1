// Remembers across restarts which address feeds an Input ID, where the order of arrival would decide it otherwise.
import type { InputId } from "../core/point.ts";
import type { TagId } from "../core/source.ts";

/** For one source. */
export interface AddressMemory {
  /** Every Input ID of which an address is remembered. */
  inputs(): Iterable<{ readonly tag: TagId; readonly input: InputId; readonly address: string }>;
  /** The address that fed `input` before. Undefined: none is remembered. */
  recall(tag: TagId, input: InputId): string | undefined;
  /** Called when an address begins to feed `input`, and whenever another one is refused. Returns at once. */
  remember(tag: TagId, input: InputId, address: string): void;
}
