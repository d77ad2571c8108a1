// Ownership of Input IDs: which tag and address feed each of them. It prevents two from silently writing one signal.

import type { Ambiguity } from "../core/driver.ts";
import type { EpochMicros, InputId } from "../core/point.ts";
import type { TagId } from "../core/source.ts";
import type { RateLimitedLog } from "../lib/flow/rate-limited-log.ts";
import type { InputState, InputTag } from "./input-state.ts";
import type { InputWatch, RefusedInput } from "./mapping.ts";

export interface Feeder extends Pick<InputState, "input" | "address"> {
  readonly of: Pick<InputTag, "id"> & {
    readonly rule: Pick<InputTag["rule"], "shared">;
    readonly parts: Pick<InputTag["parts"], "source">;
  };
  /** The tag owned the Input ID before the restart and has not claimed it again yet. */
  readonly reserved?: true;
}

/** State kept for Input IDs without an owner, since a changed source is released before it claims again. */
const spareInputs = 4_096;

/** State of an Input ID that several tags feed, for all of them. */
interface SharedInput {
  /** The newest arrival time. It keeps the arrival times distinct. */
  arrival: number;
  /** The newest stored value. */
  stored?: { readonly time: EpochMicros; readonly value: number };
}

/** The tags that feed each Input ID, for all sources of an agent. */
export class InputOwners {
  readonly #owners = new Map<InputId, Feeder | readonly Feeder[]>();
  readonly #shared = new Map<InputId, SharedInput>();

  /** Reserves an Input ID for the tag that owned it before the restart, until that tag claims it. */
  reserve(feeder: Feeder): void {
    if (!this.#owners.has(feeder.input)) this.#owners.set(feeder.input, feeder);
  }

  /** Returns the conflicting owner. Undefined: `feeder` may feed the Input ID, alone or with other shared tags. */
  claim(feeder: Feeder): Feeder | undefined {
    const { input } = feeder;
    const all = this.#of(input).filter(({ reserved, of }) => !(reserved && of === feeder.of));
    const other = all.find(({ of }) => !(of.rule.shared && feeder.of.rule.shared));
    if (other === undefined) this.#owners.set(input, all.length === 0 ? feeder : [...all, feeder]);
    return other;
  }

  /** Whether `feeder` still owns its Input ID. It does not after its source was released. */
  owns(feeder: Feeder): boolean {
    return this.#of(feeder.input).includes(feeder);
  }

  /** The state of an Input ID that several tags may feed. */
  sharedOf(input: InputId): SharedInput {
    const known = this.#shared.get(input) ?? { arrival: 0 };
    this.#shared.set(input, known);
    return known;
  }

  release(source: string): void {
    if (this.#shared.size > this.#owners.size + spareInputs)
      for (const input of this.#shared.keys()) if (!this.#owners.has(input)) this.#shared.delete(input);
    for (const input of this.#owners.keys()) {
      const all = this.#of(input);
      const left = all.filter((feeder) => feeder.of.parts.source !== source);
      if (left.length === 0) this.#owners.delete(input);
      else if (left.length < all.length) this.#owners.set(input, left);
    }
  }

  /** A single feeder is stored without an array, since there may be 100,000 Input IDs. */
  #of(input: InputId): readonly Feeder[] {
    const owner = this.#owners.get(input);
    if (owner === undefined) return [];
    return "of" in owner ? [owner] : owner;
  }
}

/** A refused Input ID, or a refused address of one: the ID is invalid, a limit is reached, or another feeds it. */
export class RefusedState {
  readonly #what: Pick<RefusedInput, "tag" | "input" | "reason" | "remedy">;
  /** The owner of the Input ID. Undefined: it has none. */
  readonly owner: Feeder | undefined;
  /** The last refused address. Empty: nothing was read yet. */
  address: string;
  readings = 0;

  constructor(what: Pick<RefusedInput, "tag" | "input" | "reason" | "remedy">, owner?: Feeder, address = "") {
    this.#what = what;
    this.owner = owner;
    this.address = address;
  }

  describe(): RefusedInput {
    const { owner, address, readings } = this;
    const fedBy = owner && { source: owner.of.parts.source, address: owner.address };
    return { ...this.#what, address, ...(fedBy && { fedBy }), readings };
  }
}

/** Reports a refused Input ID, or a refused address of one, to the gap record and the log. */
export function refusalReport(log: RateLimitedLog, watch: InputWatch | undefined): (refused: RefusedState) => void {
  return (refused) => {
    const { tag, input, address, fedBy, reason } = refused.describe();
    watch?.failed(fedBy && address !== "" ? `${input} (${address})` : input, undefined, "refused", reason);
    const fields = { tag, input, ...(address !== "" && { address }), reason };
    log.warn(
      fields,
      fedBy
        ? "a second address of an Input ID was refused, its readings are not stored"
        : "an Input ID was refused, its readings are not stored",
    );
  };
}

/** Remembers across restarts which address feeds each Input ID of a source, independent of the order of arrival. */
export interface AddressMemory {
  /** Every Input ID with a remembered address. */
  inputs(): Iterable<{ readonly tag: TagId; readonly input: InputId; readonly address: string }>;
  /** The address that fed `input` before. Undefined: unknown. */
  recall(tag: TagId, input: InputId): string | undefined;
  /** Called when an address starts to feed `input`, and whenever another address is refused. Must not block. */
  remember(tag: TagId, input: InputId, address: string): void;
}

interface AddressBindingParts {
  /** Undefined: the address is chosen again after each start. */
  readonly memory: AddressMemory | undefined;
  /** Tags of which several addresses can lead to the same Input ID. */
  readonly ambiguities: ReadonlyMap<TagId, Ambiguity>;
  /** Called once for each listed second address. */
  readonly refused: (refused: RefusedState) => void;
}

/** Largest number of second addresses that a source lists. Readings of others are only counted. */
const mostListed = 100;
const distinguish = "use {path} in `input`, or another name that tells the addresses apart; or write `shared: true`";

/**
 * Binds each Input ID of a source to one address and refuses all others. It binds the first address that the driver
 * lists on connecting, or that of the first usable value. After a restart, the broker or server may send another
 * address first. The choice is therefore remembered: from the start if the configuration permits several addresses,
 * otherwise once a second address was refused.
 */
export class AddressBinding {
  readonly #parts: AddressBindingParts;
  /** Second addresses of each input. */
  readonly #refused = new Map<InputState, Map<string, RefusedState>>();
  #listed = 0;

  constructor(parts: AddressBindingParts) {
    this.#parts = parts;
  }

  /** Restores the remembered address of a new input. */
  opened(state: InputState): void {
    state.boundTo = this.#parts.memory?.recall(state.tag, state.input) ?? "";
    state.address = state.boundTo;
  }

  /** Binds `state` to the first address that the device lists or that gives a usable value. */
  bind(state: InputState, address: string): void {
    state.boundTo = address;
    state.address = address;
    if (this.#parts.ambiguities.has(state.tag)) this.#parts.memory?.remember(state.tag, state.input, address);
  }

  /** Remembers the address of `state`, since another tag or address could feed it after a restart. */
  contested({ tag, input, boundTo }: InputState): void {
    this.#parts.memory?.remember(tag, input, boundTo);
  }

  /** Counts `readings` of `address` that are not stored, since another address feeds `state`. */
  refuse(state: InputState, address: string, readings: number): void {
    const { tag, input, boundTo } = state;
    const known = this.#refused.get(state) ?? new Map<string, RefusedState>();
    const refused = known.get(address);
    if (refused) refused.readings += readings;
    else {
      this.contested(state);
      if (this.#listed >= mostListed) return;
      this.#listed++;
      const reason = `second address of this Input ID, which ${boundTo} feeds`;
      const remedy = this.#parts.ambiguities.get(tag)?.remedy ?? distinguish;
      const added = new RefusedState({ tag, input, reason, remedy }, state, address);
      added.readings = readings;
      this.#refused.set(state, known.set(address, added));
      this.#parts.refused(added);
    }
  }

  /** The list entry of `address`. Undefined: the address is not refused or not listed. */
  find(state: InputState, address: string): RefusedState | undefined {
    return this.#refused.get(state)?.get(address);
  }

  *list(): Iterable<RefusedState> {
    for (const addresses of this.#refused.values()) yield* addresses.values();
  }
}
