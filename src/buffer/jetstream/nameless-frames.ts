// Frames whose input names the cluster has lost. They stay in the stream until their agent has written the names again.
import { RangeSet } from "../disk/counters/ranges.ts";
import type { FrameHeader } from "./stream-frame.ts";
import type { StreamNames } from "./stream-names.ts";

interface Nameless {
  readonly header: FrameHeader;
  readonly positions: RangeSet;
  /** The highest number of an input. */
  most: number;
}

export class NamelessFrames {
  readonly #byDictionary = new Map<string, Nameless>();

  /** `most`: the highest number of its inputs. */
  add(header: FrameHeader, at: number, most: number): void {
    const dictionary = `${header.node}\n${header.dictionary}`;
    let entry = this.#byDictionary.get(dictionary);
    if (!entry) this.#byDictionary.set(dictionary, (entry = { header, positions: new RangeSet(), most }));
    entry.positions.add(at, at + 1);
    entry.most = Math.max(entry.most, most);
  }

  /** Positions of frames whose names have reappeared; it forgets them. */
  async found(names: Pick<StreamNames, "of">): Promise<readonly RangeSet[]> {
    const found: RangeSet[] = [];
    for (const [dictionary, { header, positions, most }] of this.#byDictionary) {
      if (!(await names.of(header, most + 1))) continue;
      found.push(positions);
      this.#byDictionary.delete(dictionary);
    }
    return found;
  }

  clear(): void {
    this.#byDictionary.clear();
  }
}
