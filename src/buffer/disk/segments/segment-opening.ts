// Opens the segments found at startup: by their seal if there is one, otherwise by a scan.

import type { PointCounters } from "../counters/point-counters.ts";
import type { BufferState } from "../counters/state-file.ts";
import { copyToQuarantine, moveToQuarantine, readFile, readPart, withFile, withRetries } from "../files/disk.ts";
import { type SegmentIndex, scanSegment, segmentHeaderBytes } from "../format/segment-file.ts";
import { type LogEnvironment, Segment } from "./segment.ts";
import { type FoundFile, type FoundSegment, ownSegments, quarantine, tidy } from "./segment-finding.ts";
import { readSeal, repairSegment, sealBytes } from "./segment-writer.ts";

export interface OpeningOptions extends LogEnvironment {
  readonly folder: string;
  readonly integration: string;
  readonly stream: string;
  /** `next`: all points before this sequence number were durable. */
  readonly counters: Pick<PointCounters, "next" | "removed">;
  readonly state: BufferState | undefined;
}

const keptOfTornBytes = 65_536;

/** The segments, ordered by sequence number. `quarantined`: files that may have been segments and are in quarantine. */
export interface OpenedSegments {
  readonly segments: Segment[];
  readonly quarantined: readonly string[];
}

export function openSegments(files: readonly FoundFile[], options: OpeningOptions): OpenedSegments {
  const { disk, folder, stream } = options;
  const own = tidy(files, ownSegments(disk, folder, files, stream), options);
  const segments = own.flatMap((found, i) => {
    const limit = own[i + 1]?.first ?? Number.POSITIVE_INFINITY;
    try {
      return withRetries(() => openSegment(found, limit, options));
    } catch (error) {
      return openUnreadable(found, limit, error, options) ?? [];
    }
  });
  const quarantined: string[] = [];
  for (const { name, place, header } of files) {
    if (!place || (header !== "damaged" && header !== "unreadable")) continue;
    const opened = openDoubtful({ name, first: place.first, header: "damaged" }, segments, options);
    if (!opened) quarantined.push(name);
    else segments.push(opened);
    segments.sort((a, b) => a.first - b.first);
  }
  return { segments, quarantined };
}

/** Opens a file without a readable header if its records belong to this buffer and fit between the known segments. */
function openDoubtful(found: FoundSegment, segments: readonly Segment[], options: OpeningOptions): Segment | undefined {
  const { disk, folder, counters, state } = options;
  const before = segments.findLast(({ first }) => first <= found.first);
  const limit = segments.find(({ first }) => first > found.first)?.first ?? Number.POSITIVE_INFINITY;
  // A segment begins at the end of the one before, which was durable by then.
  const known = state ? Math.max(counters.next, before?.endSequence ?? 0) : Number.POSITIVE_INFINITY;
  const fits = (before?.endSequence ?? 0) <= found.first && found.first <= known;
  try {
    return withRetries(() => {
      const bytes = readFile(disk, `${folder}/${found.name}`);
      const scan = { first: found.first, salt: undefined, limit, end: undefined, durable: counters.next };
      const { sequences, salt } = scanSegment(bytes, scan);
      const isCopy = segments.some(({ header }) => header.salt === salt);
      if (fits && !isCopy && sequences.length > 0) return openSegment(found, limit, options);
      // Zeros after the header: a crash interrupted the creation of a segment.
      if (bytes.subarray(segmentHeaderBytes).every((byte) => byte === 0)) disk.remove(`${folder}/${found.name}`);
      else quarantine(found.name, "a file without a record of this buffer was moved to quarantine", options);
      return undefined;
    });
  } catch (error) {
    return fits ? openUnreadable(found, limit, error, options) : undefined;
  }
}

function openSegment(found: FoundSegment, limit: number, options: OpeningOptions): Segment {
  const { disk, folder, counters, note } = options;
  const durable = counters.next;
  const segment = newSegment(found, options);
  const isSealed = withFile(disk, segment.path, "read", (file) => {
    segment.bytes = file.size();
    const tail = readPart(file, Math.max(0, segment.bytes - sealBytes), sealBytes);
    if (segment.headerKnown && takeSeal(segment, tail, limit)) return true;
    const bytes = readPart(file, 0, segment.bytes);
    const salt = segment.headerKnown ? segment.header.salt : undefined;
    const index = scanSegment(bytes, { first: found.first, salt, limit, end: undefined, durable });
    takeIndex(segment, index);
    if (index.tornBytes > 0 && segment.headerKnown) {
      const fields = { segment: found.name, bytes: index.tornBytes };
      note("warn", fields, "cut off a write that had not been finished");
      const torn = bytes.subarray(index.endOffset, index.endOffset + Math.min(index.tornBytes, keptOfTornBytes));
      copyToQuarantine(disk, folder, `${found.name}-${index.endOffset}.torn`, torn);
    }
    return index.sealed;
  });
  segment.sealed = true;
  if (segment.points > 0 && (!segment.headerKnown || !isSealed)) {
    const error = repairSegment(segment, disk, { header: !segment.headerKnown, seal: !isSealed });
    // The segment is readable nevertheless, and is scanned again at the next start.
    if (error !== undefined) {
      segment.needsRepair = true;
      note("warn", { segment: found.name, err: error }, "cannot repair a segment");
    }
  }
  segment.headerKnown = true;
  return segment;
}

/**
 * Opens a segment whose file cannot be read. The file stays in place, counts the points that its name implies, and is
 * read again when it is to be delivered.
 */
function openUnreadable(
  found: FoundSegment,
  limit: number,
  error: unknown,
  options: OpeningOptions,
): Segment | undefined {
  options.note("error", { segment: found.name, err: String(error) }, "a segment cannot be read");
  if (Number.isFinite(limit)) return sealedUpTo(endOfUnreadable(found, limit, options), found, options);
  // The end of the log is unknown. The start succeeds nevertheless: the file is quarantined for manual recovery, and
  // the log continues after the last point known to be durable. Later points cannot be counted.
  options.note(
    "error",
    { segment: found.name },
    "the newest segment was moved to quarantine: how many points came after the last state is not known",
  );
  try {
    moveToQuarantine(options.disk, options.folder, found.name);
    return undefined;
  } catch (moving) {
    options.note("error", { segment: found.name, err: String(moving) }, "it could not be moved");
    // Without a known point the file is ignored: as an empty segment it would be deleted.
    const { next: durable } = options.counters;
    return durable <= found.first ? undefined : sealedUpTo(durable, found, options);
  }
}

function sealedUpTo(end: number, found: FoundSegment, options: OpeningOptions): Segment {
  const segment = newSegment(found, options);
  segment.endSequence = end;
  segment.sealed = true;
  return segment;
}

/** The end of an unreadable segment according to the state. */
function endOfUnreadable({ name, first }: FoundSegment, limit: number, { counters, state }: OpeningOptions): number {
  const next = Math.min(limit, state?.starts.find((start) => start > first) ?? limit);
  // Points lost to damage at its end count as settled, but still belong to the segment.
  const settledEnd = state?.segments.find((each) => each.name === name)?.whole.at(-1) ?? first;
  return Math.max(counters.removed.endOf(first, next), Math.min(settledEnd, next));
}

function newSegment({ name, first, header }: FoundSegment, { folder, stream, integration }: OpeningOptions): Segment {
  const lost = { kind: "hot", salt: 0, stream, first, created: 0, generation: 0, integration } as const;
  const segment = new Segment(name, `${folder}/${name}`, header === "damaged" ? lost : header);
  segment.headerKnown = header !== "damaged";
  return segment;
}

function takeSeal(segment: Segment, tail: Uint8Array, limit: number): boolean {
  const seal = readSeal(tail, segment.header.salt);
  if (!seal || seal.endSequence > limit) return false;
  segment.endSequence = seal.endSequence;
  segment.earliest = numberOr(seal.earliest);
  segment.latest = numberOr(seal.latest);
  segment.lastWall = seal.lastWall;
  segment.lastUptime = seal.lastUptime;
  return true;
}

function takeIndex(segment: Segment, index: SegmentIndex): void {
  segment.bytes = index.endOffset;
  segment.header = { ...segment.header, salt: index.salt ?? 0 };
  segment.endSequence = index.endSequence;
  segment.earliest = index.earliestTime;
  segment.latest = index.latestTime;
}

const numberOr = (value: number) => (Number.isNaN(value) ? undefined : value);
