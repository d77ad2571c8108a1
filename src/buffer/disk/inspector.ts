// Inspects the folder of a buffer without a lock and without writing, however damaged it is.
//
// For a running buffer it shows a recent state: segments may appear and disappear meanwhile, and settlements since the
// last written state count as unsettled.

import type { BufferStats } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { Coverage } from "./counters/coverage.ts";
import { type BufferState, readStates } from "./counters/state-file.ts";
import { type Disk, diskErrorCode, readFile } from "./files/disk.ts";
import type { SeriesVisitor } from "./format/columns.ts";
import { isPayloadWhole, readPoints, readRecordHeader } from "./format/record.ts";
import {
  type Damage,
  parseSegmentName,
  readFormatFile,
  readSegmentHeader,
  type SegmentHeader,
  type SegmentIndex,
  scanSegment,
} from "./format/segment-file.ts";
import {
  commonStream,
  type FoundFile,
  findFiles,
  ownSegments,
  refuseOtherVersions,
} from "./segments/segment-finding.ts";

export interface InspectedSegment {
  readonly name: string;
  /** `unreadable`: the file cannot be read, see `error`. */
  readonly kind: "hot" | "cold" | "damaged header" | "unreadable";
  readonly bytes: number;
  readonly sealed: boolean;
  /** Integration ID in the configuration when the segment was created. */
  readonly integration: string | undefined;
  readonly inputs: number;
  /** Readable points, settled or not. */
  readonly points: number;
  readonly unsettledPoints: number;
  /** Microseconds. */
  readonly earliest: number | undefined;
  readonly latest: number | undefined;
  readonly damage: readonly Damage[];
  readonly error: string | undefined;
}

export interface InspectedPoint {
  readonly input: InputId;
  /** Microseconds. */
  readonly time: number;
  readonly value: number;
}

export interface InspectedAccounts
  extends Pick<BufferStats, "settledPoints" | "refusedPoints" | "duplicatePoints" | "collidedPoints" | "losses"> {
  readonly integration: string;
  readonly leased: BufferState["leased"];
}

export function isBuffer(folder: string, disk: Disk): boolean {
  const names = attempt(() => disk.list(folder)) ?? [];
  return names.some((name) => name === "FORMAT" || parseSegmentName(name) !== undefined);
}

export type BufferInspector = ReturnType<typeof bufferInspector>;

/** `folder` is the buffer's own folder. Throws the disk's error if it cannot be listed. */
export function bufferInspector(folder: string, disk: Disk) {
  let listed: readonly string[] = [];
  let namesNow: string[] = [];
  disk.list(folder);
  // An unreadable FORMAT file counts as missing: the segments identify the buffer.
  const formatFile = attempt(() => readFormatFile(disk, folder)) ?? "missing";
  const stream = typeof formatFile === "object" ? formatFile.stream : undefined;
  const { states } = readStates(disk, folder);
  const kept = states.find(({ state }) => stream === undefined || state.stream === stream)?.state;

  function files(): FoundFile[] {
    return findFiles({ disk, folder, note: () => {} });
  }

  function namesOf(there: readonly string[]): string[] {
    const found = files();
    const ours = stream ?? commonStream(found);
    const own = new Set(ours === undefined ? [] : ownSegments(disk, folder, found, ours).map(({ name }) => name));
    const headers = new Map(found.map(({ name, header }) => [name, header]));
    // A file without an intact header may still be a segment with readable records.
    return there.filter((name) => own.has(name) || typeof headers.get(name) !== "object").toSorted();
  }

  function unsettledIn(name: string, read: ReadSegment, record: number): number {
    const coverage = coverageOf(name, read.header);
    const [from, to] = read.index.rangeOf(record);
    if (coverage.coversAll(from, to)) return 0;
    if (!coverage.hasSeries) return to - from;
    let points = 0;
    visit(read, record, (place, { length }) => {
      if (!coverage.covers(place, from, to)) points += length;
    });
    return points;
  }

  function visit({ bytes, index }: ReadSegment, record: number, visitor: SeriesVisitor): void {
    const at = index.offsets[record]!;
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const header = readRecordHeader(bytes, view, at, index.salt);
    if (!header || !isPayloadWhole(bytes, at, header)) return;
    // A payload that cannot be parsed is skipped like a damaged one.
    attempt(() => readPoints(bytes, at, header, visitor));
  }

  function coverageOf(name: string, header: SegmentHeader | undefined): Coverage {
    const coverage = new Coverage();
    const known = kept?.segments.find((segment) => segment.name === name);
    if (!known || (header && header.salt !== known.salt)) return coverage;
    coverage.restore(known);
    return coverage;
  }

  function readSegment(name: string): ReadSegment | Error | undefined {
    const place = parseSegmentName(name);
    if (!place) return undefined;
    try {
      const bytes = readFile(disk, `${folder}/${name}`);
      const read = readSegmentHeader(bytes);
      const header = typeof read === "object" ? read : undefined;
      const all = names();
      const next = all[all.indexOf(name) + 1];
      const limit = parseSegmentName(next ?? "")?.first ?? Number.POSITIVE_INFINITY;
      const options = { first: place.first, salt: header?.salt, limit, end: undefined };
      const index = scanSegment(bytes, { ...options, durable: kept?.durable ?? 0 });
      return { bytes, header, index };
    } catch (error) {
      if (diskErrorCode(error) === "ENOENT") return undefined;
      if (error instanceof Error) return error;
      throw error;
    }
  }

  /** Names of this buffer's segments, oldest first, without copies and files of other buffers. */
  function names(): string[] {
    const there = disk.list(folder).filter((name) => parseSegmentName(name) !== undefined);
    if (there.join() !== listed.join()) {
      listed = there;
      namesNow = namesOf(there);
    }
    return namesNow;
  }

  return {
    names,
    /** Throws `BUFFER_NEWER` or `BUFFER_OLDER` if the format of the folder is another version's. */
    checkVersion(): void {
      refuseOtherVersions(folder, formatFile, files());
    },
    /** Undefined: no slot of the state file is intact. */
    get accounts(): InspectedAccounts | undefined {
      if (!kept) return undefined;
      const { integration, settled, refused, duplicates, collided, losses, leased } = kept;
      return {
        integration,
        settledPoints: settled,
        refusedPoints: refused,
        duplicatePoints: duplicates,
        collidedPoints: collided,
        losses,
        leased,
      };
    },
    /** Reads and checks a whole segment: about 10 ms for 8 MiB. Undefined: the segment no longer exists. */
    segment(name: string): InspectedSegment | undefined {
      const read = readSegment(name);
      if (read === undefined) return undefined;
      if (read instanceof Error) return { name, ...unreadable, error: read.message };
      const { bytes, header, index } = read;
      let unsettledPoints = 0;
      for (let i = 0; i < index.sequences.length; i++) unsettledPoints += unsettledIn(name, read, i);
      return {
        name,
        kind: header?.kind ?? "damaged header",
        bytes: Math.min(bytes.length, index.endOffset),
        sealed: index.sealed,
        integration: header?.integration,
        inputs: index.dictionary.filter((input) => input !== undefined).length,
        points: index.points.reduce((sum, points) => sum + points, 0),
        unsettledPoints,
        earliest: index.earliestTime,
        latest: index.latestTime,
        damage: index.damage,
        error: undefined,
      };
    },
    /** Yields the points by record, sorted by input and time, without unreadable records. `all`: also settled ones. */
    *points(name: string, all: boolean): Generator<readonly InspectedPoint[]> {
      const read = readSegment(name);
      if (read === undefined || read instanceof Error) return;
      const { index } = read;
      const coverage = coverageOf(name, read.header);
      for (let i = 0; i < index.sequences.length; i++) {
        const [from, to] = index.rangeOf(i);
        if (!all && coverage.coversAll(from, to)) continue;
        const points: InspectedPoint[] = [];
        visit(read, i, (place, times, values) => {
          const input = index.dictionary[place];
          if (input === undefined || (!all && coverage.covers(place, from, to))) return;
          for (const [at, time] of times.entries()) points.push({ input, time, value: values[at]! });
        });
        yield points;
      }
    },
  };
}

interface ReadSegment {
  readonly bytes: Uint8Array;
  readonly header: SegmentHeader | undefined;
  readonly index: SegmentIndex;
}

const unreadable = {
  kind: "unreadable",
  bytes: 0,
  sealed: false,
  integration: undefined,
  inputs: 0,
  points: 0,
  unsettledPoints: 0,
  earliest: undefined,
  latest: undefined,
  damage: [],
} as const;
