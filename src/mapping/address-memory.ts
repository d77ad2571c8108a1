// Remembers across restarts which address feeds an Input ID, where the order of arrival would decide it otherwise.
import type { InputId } from "../core/point.ts";
import type { TagId } from "../core/source.ts";

/** For one source. */
export interface AddressMemory {
  /** The address that fed `input` before. Undefined: none is remembered. */
  recall(tag: TagId, input: InputId): string | undefined;
  /** Called once when an address begins to feed `input`, and again when a second address is refused. Returns at once. */
  remember(tag: TagId, input: InputId, address: string): void;
}
