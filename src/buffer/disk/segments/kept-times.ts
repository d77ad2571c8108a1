// The times at which inputs with `sameTime: keep` have values. A further value at such a time gets the next free time.
//
//   appended times     10  10  10        12  10
//   ranges occupied    [10,11) → [10,13)     [10,13) [12…] is covered → 13, then 14
//
// Values of one coarse time form one range, so finding a free time does not depend on their number. Only the latest
// ranges of each input are kept, plus the one used last, so that successive older values get different times.

import { isInputId } from "../../../core/point.ts";
import { RangeSet } from "../counters/ranges.ts";
import { crc32Text } from "../files/bytes.ts";
import { diskErrorCode, ifThere, readFile, replaceFile, withRetries, writeFully } from "../files/disk.ts";
import type { SegmentIndex } from "../format/segment-file.ts";
import { type LogParts, type Segment, SegmentReader } from "./segment.ts";

/** Maximum ranges kept per input, one for each different time of a coarse clock. */
export const mostKeptRanges = 64;

export class KeptTimes {
  readonly #ranges = new Map<number, RangeSet>();
  /** Inputs that are not in `kept.json` yet. */
  readonly unnamed = new Set<number>();

  entries(): IterableIterator<[number, RangeSet]> {
    return this.#ranges.entries();
  }

  rangesOf(input: number): RangeSet | undefined {
    return this.#ranges.get(input);
  }

  get isEmpty(): boolean {
    return this.#ranges.size === 0;
  }

  has(input: number): boolean {
    return this.#ranges.has(input);
  }

  /** Occupies and returns the first free time from `time` on. `mark`: the input's latest time, if known. */
  place(input: number, time: number, mark: number): number {
    let ranges = this.#ranges.get(input);
    if (!ranges) {
      ranges = new RangeSet(Number.isFinite(mark) ? [mark, mark + 1] : []);
      this.#ranges.set(input, ranges);
      this.unnamed.add(input);
    }
    const place = ranges.endOf(time) ?? time;
    this.occupy(input, place);
    return place;
  }

  occupy(input: number, from: number, to = from + 1): void {
    const ranges = this.#ranges.get(input) ?? new RangeSet();
    this.#ranges.set(input, ranges);
    ranges.add(from, to);
    if (ranges.bounds.length > 2 * mostKeptRanges) ranges.removeFirst(from);
  }

  /** Frees a time that `place` returned, because its value was not stored. */
  free(input: number, time: number): void {
    this.#ranges.get(input)?.remove(time, time + 1);
  }
}

// Stores the occupied times of `sameTime: keep` inputs across restarts in `kept.json`. Each line is a CRC and JSON.
//
//   1st line   times of all points before `sequence`          written before a segment is sealed or removed
//   others     a new input and its times                      appended before its first points
//   segments   times of all points from `sequence` on         read at startup; usually only the segment being written
//
// Without it, a value that a broker delivers again after a restart could replace another one with the same coarse time.

export interface KeptFileOptions extends Pick<LogParts, "disk" | "folder" | "note" | "stream" | "inputs"> {
  readonly kept: KeptTimes;
}

type IndexOf = (segment: Segment) => SegmentIndex;

interface Content {
  readonly stream: string;
  readonly sequence: number;
  readonly inputs: readonly NamedInput[];
}

type NamedInput = readonly [input: string, bounds: readonly number[]];

const newline = 0x0a;

export const keptFileName = "kept.json";

export function keptFile({ disk, folder, note, stream, inputs, kept }: KeptFileOptions) {
  /** The file covers all points before this sequence number. */
  let sequence = 0;
  /** Offset after the last intact line. Undefined: there is no file of this buffer. */
  let end: number | undefined;

  function write(next: number): void {
    const content: Content = {
      stream,
      sequence: next,
      inputs: Array.from(kept.entries(), ([input, { bounds }]) => [inputs.inputAt(input), bounds]),
    };
    const line = lineOf(content);
    // If this fails after the file was replaced, nothing may be appended at the end of the file before.
    end = undefined;
    replaceFile(disk, folder, keptFileName, line);
    disk.syncFolder(folder);
    sequence = next;
    end = line.length;
    kept.unnamed.clear();
  }

  /** Appends the new inputs at `at`, over the remains of a failed write. False: the file was deleted. */
  function append(at: number): boolean {
    const file = ifThere(() => disk.open(`${folder}/${keptFileName}`, "write"));
    if (!file) return false;
    const lines = Array.from(kept.unnamed, (input) =>
      lineOf([inputs.inputAt(input), kept.rangesOf(input)?.bounds ?? []] satisfies NamedInput),
    );
    const bytes = Buffer.concat(lines);
    try {
      writeFully(file, bytes, at);
      file.sync();
    } finally {
      file.close();
    }
    end = at + bytes.length;
    kept.unnamed.clear();
    return true;
  }

  /** Reads the lines before the first damaged one, which begins at `length`. */
  function read(): { content: Content | undefined; named: NamedInput[]; length: number } {
    let content: Content | undefined;
    const named: NamedInput[] = [];
    let length = 0;
    try {
      const bytes = withRetries(() => readFile(disk, `${folder}/${keptFileName}`));
      while (length < bytes.length) {
        const next = bytes.indexOf(newline, length);
        if (next < 0) break;
        const line = bytes.subarray(length, next);
        const json = line.subarray(9);
        if (new TextDecoder().decode(line.subarray(0, 8)) !== crc32Text(json)) break;
        const value: unknown = JSON.parse(new TextDecoder().decode(json));
        // The checksum proves that this buffer wrote the value.
        if (content) named.push(value as NamedInput);
        else content = value as Content;
        length = next + 1;
      }
    } catch (error) {
      if (diskErrorCode(error) === "" && !(error instanceof SyntaxError)) throw error;
    }
    return { content, named, length };
  }

  function occupyFrom(segment: Segment, indexOf: IndexOf): void {
    const index = indexOf(segment);
    const numbers = index.dictionary.map((input) => (input === undefined ? -1 : inputs.numberOf(input)));
    if (!numbers.some((number) => kept.has(number))) return;
    using reader = new SegmentReader(disk, segment, index, true);
    const occupy = (place: number, times: Float64Array) => {
      const number = numbers[place] ?? -1;
      if (kept.has(number)) for (const time of times) kept.occupy(number, time);
    };
    for (let i = 0; i < index.sequences.length; i++) if (index.rangeOf(i)[1] > sequence) reader.visit(i, occupy);
  }

  return {
    /** Fills `kept` from the file and from the segments with later points. Skips what is unreadable. */
    restore(segments: readonly Segment[], indexOf: IndexOf): void {
      const { content, named, length } = read();
      if (content?.stream !== stream) return;
      ({ sequence } = content);
      end = length;
      for (const [input, bounds] of [...content.inputs, ...named])
        if (isInputId(input))
          for (let i = 0; i < bounds.length; i += 2) kept.occupy(inputs.numberOf(input), bounds[i]!, bounds[i + 1]);
      for (const segment of segments)
        if (segment.points > 0 && segment.endSequence > sequence)
          try {
            withRetries(() => occupyFrom(segment, indexOf));
          } catch (error) {
            note(
              "warn",
              { segment: segment.name, err: String(error) },
              "cannot read the times that inputs with sameTime: keep have values for; values delivered again may replace others",
            );
          }
    },
    /** Names new inputs before their points, from `next` on, are appended: a start restores only inputs that it names. */
    nameNew(next: number): void {
      if (end === undefined || !append(end)) write(next);
    },
    /** To be called before the segment that ends at `next` is sealed, so that a start need not read it. Never throws. */
    sealing(next: number): void {
      if (kept.isEmpty || sequence === next) return;
      try {
        write(next);
      } catch (error) {
        note("warn", { err: String(error) }, `${keptFileName} could not be written`);
      }
    },
  };
}

function lineOf(value: Content | NamedInput): Uint8Array {
  const json = JSON.stringify(value);
  return new TextEncoder().encode(`${crc32Text(json)} ${json}\n`);
}
