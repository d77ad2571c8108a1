// Who feeds which Input ID, over all sources of an agent, so that two tags never write to one signal.
import type { InputId } from "../core/point.ts";

export interface InputOwners {
  /** Undefined: `input` is now `feeder`'s of `source`, or was before. Else it is somebody else's: `source: feeder`. */
  claim(input: InputId, source: string, feeder: string): string | undefined;
  /** Gives back everything of `source`. */
  release(source: string): void;
}

export function inputOwners(): InputOwners {
  const owners = new Map<InputId, { readonly source: string; readonly feeder: string }>();
  return {
    claim(input, source, feeder) {
      const owner = owners.get(input);
      if (owner === undefined) owners.set(input, { source, feeder });
      else if (owner.source !== source || owner.feeder !== feeder) return `${owner.source}: ${owner.feeder}`;
      return undefined;
    },
    release(source) {
      for (const [input, owner] of owners) if (owner.source === source) owners.delete(input);
    },
  };
}
