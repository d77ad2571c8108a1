// Binds each Input ID to the one address that feeds it, and refuses every other one.
//
// The address of the first usable value is bound, or the first one that the driver lists when it connects. The choice is
// remembered across restarts, since the broker or server may send another address first then: from the start where the
// configuration says that addresses of a tag can come to one Input ID, else as soon as a second address was refused.
import type { Ambiguity, TagId } from "../core/source.ts";
import type { AddressMemory } from "./address-memory.ts";
import type { InputState } from "./input-state.ts";
import type { RefusedInput } from "./mapping.ts";

interface AddressBindingParts {
  readonly source: string;
  /** Undefined: the choice is made again after each start. */
  readonly memory: AddressMemory | undefined;
  /** The tags whose addresses can come to one Input ID. */
  readonly ambiguities: ReadonlyMap<TagId, Ambiguity>;
  /** Called once for each second address that is listed. */
  readonly refused: (refused: RefusedInput) => void;
}

/** Most second addresses that are listed of a source; the readings of further ones are counted only. */
const mostListed = 100;
const distinguish = "use {path} in `input`, or another name that tells the addresses apart; or write `shared: true`";

export class AddressBinding {
  readonly #parts: AddressBindingParts;
  /** Readings of each second address that were not stored. */
  readonly #refused = new Map<InputState, Map<string, number>>();
  #listed = 0;

  constructor(parts: AddressBindingParts) {
    this.#parts = parts;
  }

  /** Takes up what is remembered of an input that is new. */
  opened(state: InputState): void {
    state.boundTo = this.#parts.memory?.recall(state.tag, state.input) ?? "";
    state.address = state.boundTo;
  }

  /** Binds `state` to `address`, which has given a usable value or is the first that the device lists. */
  bind(state: InputState, address: string): void {
    state.boundTo = address;
    state.address = address;
    if (this.#parts.ambiguities.has(state.tag)) this.#parts.memory?.remember(state.tag, state.input, address);
  }

  /** Something else could feed `state` after a restart. */
  contested({ tag, input, boundTo }: InputState): void {
    this.#parts.memory?.remember(tag, input, boundTo);
  }

  /** `readings` of `address` cannot be stored, since another one feeds `state`. */
  refuse(state: InputState, address: string, readings: number): void {
    const known = this.#refused.get(state);
    const before = known?.get(address);
    if (before !== undefined) {
      known?.set(address, before + readings);
      return;
    }
    this.contested(state);
    if (this.#listed >= mostListed) return;
    this.#listed++;
    if (known) known.set(address, readings);
    else this.#refused.set(state, new Map([[address, readings]]));
    this.#parts.refused(this.#describe(state, address, readings));
  }

  /** What is listed of `address`. Undefined: it is not refused, or not listed. */
  find(state: InputState, address: string): RefusedInput | undefined {
    const readings = this.#refused.get(state)?.get(address);
    return readings === undefined ? undefined : this.#describe(state, address, readings);
  }

  *list(): Iterable<RefusedInput> {
    for (const [state, addresses] of this.#refused)
      for (const [address, readings] of addresses) yield this.#describe(state, address, readings);
  }

  #describe({ tag, input, boundTo }: InputState, address: string, readings: number): RefusedInput {
    const { source, ambiguities } = this.#parts;
    return {
      tag,
      input,
      address,
      fedBy: { source, address: boundTo },
      reason: `second address of this Input ID, which ${boundTo} feeds`,
      remedy: ambiguities.get(tag)?.remedy ?? distinguish,
      readings,
    };
  }
}
