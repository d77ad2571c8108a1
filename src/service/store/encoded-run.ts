// Points of one signal as encoded blocks, ready to be stored.
import { decodePoints, encodeBlock } from "./block-format.ts";
import { type BlockColumns, fullBlocks, joinedBlocks } from "./point-block.ts";

export interface EncodedBlock {
  /** First and last time, microseconds since the epoch. */
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly data: Uint8Array;
}

/** Encodes points as few blocks. The data of each is overwritten by the next one. */
export function* encodedBlocks(columns: BlockColumns): Generator<EncodedBlock> {
  for (const block of fullBlocks(columns)) {
    const { times } = block;
    yield { first: times[0]!, last: times.at(-1)!, count: times.length, data: encodeBlock(block) };
  }
}

const slabBytes = 2 ** 20;
/** Enough for a full insert of doubles. Further slabs are released. */
const keptSlabs = 16;

/** Encodes into memory that is reused after `reset`, since the garbage collector would release megabytes too late. */
export class RunEncoder {
  readonly #slabs: Uint8Array[] = [];
  #slab = 0;
  #at = 0;

  /** Invalidates all results. */
  reset(): void {
    this.#slabs.splice(keptSlabs);
    this.#slab = this.#at = 0;
  }

  encode(columns: BlockColumns): EncodedBlock[] {
    return Array.from(encodedBlocks(columns), (block) => ({ ...block, data: this.#keep(block.data) }));
  }

  #keep(bytes: Uint8Array): Uint8Array {
    if (this.#at + bytes.length > slabBytes) {
      this.#slab++;
      this.#at = 0;
    }
    const slab = (this.#slabs[this.#slab] ??= new Uint8Array(slabBytes));
    const kept = slab.subarray(this.#at, this.#at + bytes.length);
    kept.set(bytes);
    this.#at += bytes.length;
    return kept;
  }
}

export function decodedRun(blocks: readonly EncodedBlock[]): BlockColumns {
  return joinedBlocks(blocks.map(({ data }) => decodePoints(data)));
}
