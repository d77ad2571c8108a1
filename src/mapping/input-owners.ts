// Which tag and which address feed each Input ID, so that two never write to one signal unnoticed.

import type { Ambiguity } from "../core/driver.ts";
import type { InputId } from "../core/point.ts";
import type { TagId } from "../core/source.ts";
import type { InputState, InputTag } from "./input-state.ts";
import type { RefusedInput } from "./mapping.ts";

/** An input of a tag that claims its Input ID. */
export interface Feeder extends Pick<InputState, "input" | "address"> {
  readonly of: Pick<InputTag, "id" | "source" | "shared">;
  /** The tag had the Input ID before the start, and has not claimed it since. */
  readonly reserved?: true;
}

/** Arrival times kept beyond those of inputs that have an owner: a source that is changed is released first. */
const spareArrivals = 4_096;

/** The tags that feed each Input ID, over all sources of an agent. */
export class InputOwners {
  readonly #owners = new Map<InputId, Feeder | readonly Feeder[]>();
  readonly #arrivals = new Map<InputId, Pick<InputState, "arrival">>();

  /** Keeps an Input ID for a tag that had it before the start, until the tag claims it. */
  reserve(feeder: Feeder): void {
    if (!this.#owners.has(feeder.input)) this.#owners.set(feeder.input, feeder);
  }

  /**
   * Undefined: `feeder` may feed its Input ID from now on, because it is the only one, or because all that feed it are
   * shared. Else the feeder that has the Input ID.
   */
  claim(feeder: Feeder): Feeder | undefined {
    const { input } = feeder;
    const all = this.#of(input).filter(({ reserved, of }) => !(reserved && of === feeder.of));
    const other = all.find(({ of }) => !(of.shared && feeder.of.shared));
    if (other === undefined) this.#owners.set(input, all.length === 0 ? feeder : [...all, feeder]);
    return other;
  }

  /** Whether `feeder` still has its Input ID: its source may have been released. */
  owns(feeder: Feeder): boolean {
    return this.#of(feeder.input).includes(feeder);
  }

  /** The newest arrival time of an Input ID that several tags may feed: no two values of it share one. */
  arrivalOf(input: InputId): Pick<InputState, "arrival"> {
    const known = this.#arrivals.get(input) ?? { arrival: 0 };
    this.#arrivals.set(input, known);
    return known;
  }

  /** Removes the claims of `source`. */
  release(source: string): void {
    if (this.#arrivals.size > this.#owners.size + spareArrivals)
      for (const input of this.#arrivals.keys()) if (!this.#owners.has(input)) this.#arrivals.delete(input);
    for (const input of this.#owners.keys()) {
      const all = this.#of(input);
      const left = all.filter((feeder) => feeder.of.source !== source);
      if (left.length === 0) this.#owners.delete(input);
      else if (left.length < all.length) this.#owners.set(input, left);
    }
  }

  /** One feeder is kept without a list around it: there may be 100,000 of them. */
  #of(input: InputId): readonly Feeder[] {
    const owner = this.#owners.get(input);
    if (owner === undefined) return [];
    return "of" in owner ? [owner] : owner;
  }
}

/** An Input ID that a tag cannot use: none can be made of what was captured, or another tag has it. */
export class RefusedState {
  readonly #what: Pick<RefusedInput, "tag" | "input" | "reason" | "remedy">;
  /** Who has the Input ID. Undefined: it is none. */
  readonly owner: Feeder | undefined;
  /** The address that was refused last; empty while nothing was read. */
  address = "";
  readings = 0;

  constructor(what: Pick<RefusedInput, "tag" | "input" | "reason" | "remedy">, owner?: Feeder) {
    this.#what = what;
    this.owner = owner;
  }

  describe(): RefusedInput {
    const { owner, address, readings } = this;
    const fedBy = owner && { source: owner.of.source, address: owner.address };
    return { ...this.#what, address, ...(fedBy && { fedBy }), readings };
  }
}

/** Remembers across restarts which address feeds an Input ID, where the order of arrival would decide it otherwise. For one source. */
export interface AddressMemory {
  /** Every Input ID of which an address is remembered. */
  inputs(): Iterable<{ readonly tag: TagId; readonly input: InputId; readonly address: string }>;
  /** The address that fed `input` before. Undefined: none is remembered. */
  recall(tag: TagId, input: InputId): string | undefined;
  /** Called when an address begins to feed `input`, and whenever another one is refused. Returns at once. */
  remember(tag: TagId, input: InputId, address: string): void;
}

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

/**
 * Binds each Input ID of a source to the one address that feeds it, and refuses every other one. The address of the first
 * usable value is bound, or the first one that the driver lists when it connects. The choice is remembered across
 * restarts, since the broker or server may send another address first then: from the start where the configuration says
 * that addresses of a tag can come to one Input ID, else as soon as a second address was refused.
 */
export class AddressBinding {
  readonly #parts: AddressBindingParts;
  /** Readings of each second address that were not stored. */
  readonly #refused = new Map<InputState, Map<string, number>>();
  #listed = 0;

  constructor(parts: AddressBindingParts) {
    this.#parts = parts;
  }

  /** Restores the remembered address of a new input. */
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
    const known = this.#refused.get(state) ?? new Map<string, number>();
    const before = known.get(address);
    if (before === undefined) {
      this.contested(state);
      if (this.#listed >= mostListed) return;
      this.#listed++;
    }
    this.#refused.set(state, known.set(address, (before ?? 0) + readings));
    if (before === undefined) this.#parts.refused(this.#describe(state, address, readings));
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
