// Which tag feeds which Input ID, over all sources of an agent, so that two tags never write to one signal unnoticed.
import type { InputId } from "../core/point.ts";
import type { InputState, InputTag } from "./input-state.ts";

/** An input of a tag that claims its Input ID. */
export interface Feeder extends Pick<InputState, "input" | "address"> {
  readonly of: Pick<InputTag, "id" | "source" | "shared">;
  /** The tag had the Input ID before the start, and has not claimed it since. */
  readonly reserved?: true;
}

export interface InputOwners {
  /** Keeps an Input ID for a tag that had it before the start, until the tag claims it. */
  reserve(feeder: Feeder): void;
  /**
   * Undefined: `feeder` may feed its Input ID from now on, because it is the only one, or because all that feed it are
   * shared. Else the feeder that has the Input ID.
   */
  claim(feeder: Feeder): Feeder | undefined;
  /** Whether `feeder` still has its Input ID: its source may have been released. */
  owns(feeder: Feeder): boolean;
  /** The newest arrival time of an Input ID that several tags may feed: no two values of it share one. */
  arrivalOf(input: InputId): Pick<InputState, "arrival">;
  /** Removes the claims of `source`. */
  release(source: string): void;
}

/** Arrival times kept beyond those of inputs that have an owner: a source that is changed is released first. */
const spareArrivals = 4_096;

export function inputOwners(): InputOwners {
  const owners = new Map<InputId, Feeder | readonly Feeder[]>();
  const arrivals = new Map<InputId, Pick<InputState, "arrival">>();
  return {
    reserve(feeder) {
      if (!owners.has(feeder.input)) owners.set(feeder.input, feeder);
    },
    claim(feeder) {
      const { input } = feeder;
      const all = asList(owners.get(input)).filter(({ reserved, of }) => !(reserved && of === feeder.of));
      const other = all.find(({ of }) => !(of.shared && feeder.of.shared));
      if (other === undefined) owners.set(input, all.length === 0 ? feeder : [...all, feeder]);
      return other;
    },
    owns(feeder) {
      return asList(owners.get(feeder.input)).includes(feeder);
    },
    arrivalOf(input) {
      const known = arrivals.get(input);
      if (known) return known;
      const made = { arrival: 0 };
      arrivals.set(input, made);
      return made;
    },
    release(source) {
      if (arrivals.size > owners.size + spareArrivals)
        for (const input of arrivals.keys()) if (!owners.has(input)) arrivals.delete(input);
      for (const [input, owner] of owners) {
        const all = asList(owner);
        const left = all.filter((feeder) => feeder.of.source !== source);
        if (left.length === 0) owners.delete(input);
        else if (left.length < all.length) owners.set(input, left);
      }
    },
  };
}

/** One feeder is kept without a list around it: there may be 100,000 of them. */
function asList(owner: Feeder | readonly Feeder[] | undefined): readonly Feeder[] {
  if (owner === undefined) return [];
  return "of" in owner ? [owner] : owner;
}
