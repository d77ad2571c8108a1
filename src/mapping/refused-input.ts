// An Input ID that a tag cannot use: none can be made of what was captured, or another tag has it.
import type { TagId } from "../core/source.ts";
import type { Feeder } from "./input-owners.ts";
import type { RefusedInput } from "./mapping.ts";

const anotherInput = "change `input` or `maxInputs` of this tag";
const anotherTag = "give one of the tags another `input`, or write `shared: true` on both of them";

export class RefusedState {
  readonly tag: TagId;
  readonly input: string;
  readonly reason: string;
  /** Who has the Input ID. Undefined: it is none. */
  readonly owner: Feeder | undefined;
  readonly #remedy: string;
  /** The address that was refused last; empty while nothing was read. */
  address = "";
  readings = 0;

  constructor(tag: TagId, input: string, reason: string, owner?: Feeder, remedy = anotherInput) {
    this.#remedy = remedy;
    this.tag = tag;
    this.input = input;
    this.reason = reason;
    this.owner = owner;
  }

  describe(): RefusedInput {
    const { tag, input, address, reason, readings, owner } = this;
    if (owner === undefined) return { tag, input, address, reason, remedy: this.#remedy, readings };
    const fedBy = { source: owner.of.source, address: owner.address };
    return { tag, input, address, fedBy, reason, remedy: anotherTag, readings };
  }
}
