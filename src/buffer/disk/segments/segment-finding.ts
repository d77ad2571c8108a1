// Distinguishes the segments of a buffer from other files in its folder. A file is a segment if its header is intact
// and has the UUID of the buffer and a position in the log. Other files with the name of a segment are handled by
// `segment-opening.ts`: their records identify them, or they are quarantined.
import { AgentError } from "../../../core/errors.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import {
  type Disk,
  diskErrorCode,
  moveToQuarantine,
  type Notes,
  readFile,
  readPart,
  withFile,
  withRetries,
} from "../files/disk.ts";
import {
  type FormatFile,
  parseSegmentName,
  readSegmentHeader,
  type SegmentHeader,
  scanSegment,
  segmentHeaderBytes,
  segmentName,
} from "../format/segment-file.ts";
import { readSeal, sealBytes } from "./segment-writer.ts";

/** `damaged`: no intact header. `folder`: not a file. `unreadable`: reading failed. */
type FoundHeader = SegmentHeader | "damaged" | "folder" | "unreadable";

export interface FoundFile {
  readonly name: string;
  /** Position in the name. Undefined: not the name of a segment. */
  readonly place: { readonly first: number; readonly attempt: number } | undefined;
  readonly header: FoundHeader;
  readonly isOlder: boolean;
}

/** A file that is, or may be, a segment of this buffer. */
export interface FoundSegment {
  readonly name: string;
  readonly first: number;
  readonly header: SegmentHeader | "damaged";
}

export interface FindingOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly note: Notes;
}

/** Throws `BUFFER_NEWER` for a segment that only a later version can read. */
export function findFiles({ disk, folder, note }: FindingOptions): FoundFile[] {
  return disk
    .list(folder)
    .filter((name) => name.startsWith("seg-"))
    .map((name) => {
      const header = headerOf(disk, `${folder}/${name}`, (error) =>
        note("error", { segment: name, err: String(error) }, "a segment cannot be read"),
      );
      if (header === "newer") throw newerBuffer(folder);
      const isOlder = header === "older";
      return { name, place: parseSegmentName(name), header: isOlder ? "damaged" : header, isOlder };
    });
}

/**
 * Throws `BUFFER_NEWER` or `BUFFER_OLDER` if another version wrote the folder. A damaged version number alone does not
 * make a buffer older: a readable FORMAT or segment outweighs it.
 */
export function refuseOtherVersions(folder: string, format: FormatFile, files: readonly FoundFile[]): void {
  if (format === "newer") throw newerBuffer(folder);
  if (typeof format === "object" || files.some(({ header }) => typeof header === "object")) return;
  if (format === "older" || files.some(({ isOlder }) => isOlder))
    throw new AgentError("BUFFER_OLDER", `the buffer in ${folder} has the format of an older version`);
}

function newerBuffer(folder: string): AgentError {
  return new AgentError("BUFFER_NEWER", `the buffer in ${folder} was written by a newer version`);
}

/** The most frequent UUID in the headers. */
export function commonStream(files: readonly FoundFile[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { header } of files)
    if (typeof header === "object") counts.set(header.stream, (counts.get(header.stream) ?? 0) + 1);
  return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0];
}

export function hasStream(files: readonly FoundFile[], stream: string): boolean {
  return files.some(({ header }) => typeof header === "object" && header.stream === stream);
}

/** The segments of this buffer with an intact header, in log order and without copies. Does not change the folder. */
export function ownSegments(disk: Disk, folder: string, files: readonly FoundFile[], stream: string): FoundSegment[] {
  const unique = new Map<string, NamedSegment>();
  for (const { name, place, header } of files) {
    if (typeof header !== "object" || header.stream !== stream || !Number.isSafeInteger(header.first)) continue;
    const isMisnamed = place?.first !== header.first;
    const segment = { name, first: header.first, header, isMisnamed, attempt: place?.attempt ?? 0 };
    // The salt is random, so files with the same salt are copies. Keep the longer one.
    const key = [header.salt, header.first, header.created].join();
    const other = unique.get(key);
    if (other && !isBetter(disk, folder, segment, other)) continue;
    unique.set(key, segment);
  }
  return [...unique.values()].toSorted((a, b) => a.first - b.first || a.attempt - b.attempt);
}

/** Renames segments that have a wrong name. Moves foreign files and copies to quarantine. */
export function tidy(
  files: readonly FoundFile[],
  own: readonly FoundSegment[],
  options: FindingOptions & { readonly stream: string },
): FoundSegment[] {
  const { disk, folder, note, stream } = options;
  const isOwn = new Set(own.map(({ name }) => name));
  for (const { name, place, header } of files) {
    const isDoubtful = place !== undefined && (header === "damaged" || header === "unreadable");
    // Leave other files alone that merely start with `seg-`.
    if (isOwn.has(name) || isDoubtful || !/^seg-\d{16}/.test(name)) continue;
    quarantine(name, `${whatIs(header, stream)} was moved to quarantine`, options);
  }
  const taken = new Set(disk.list(folder));
  return own.map((segment) => {
    if (parseSegmentName(segment.name)?.first === segment.first) return segment;
    let attempt = 0;
    while (taken.has(segmentName(segment.first, attempt))) attempt++;
    const name = segmentName(segment.first, attempt);
    try {
      disk.rename(`${folder}/${segment.name}`, `${folder}/${name}`);
    } catch (error) {
      note("warn", { segment: segment.name, err: String(error) }, "a segment could not be renamed");
      return segment;
    }
    taken.add(name);
    note("warn", { segment: name, found: segment.name }, "a segment had a wrong name");
    return { ...segment, name };
  });
}

function whatIs(header: FoundHeader, stream: string): string {
  if (typeof header !== "object") return "a file that is no segment";
  return header.stream === stream ? "a copy of a segment" : "a segment of another buffer";
}

/** Moves a file to quarantine. Never throws: a file that cannot be moved stays and is ignored. */
export function quarantine(name: string, message: string, { disk, folder, note }: FindingOptions): void {
  note("error", { segment: name }, message);
  try {
    moveToQuarantine(disk, folder, name);
  } catch (error) {
    note("error", { segment: name, err: String(error) }, "it could not be moved");
  }
}

type NamedSegment = FoundSegment & { readonly isMisnamed: boolean; readonly attempt: number };

function isBetter(disk: Disk, folder: string, segment: NamedSegment, other: NamedSegment): boolean {
  const [points, others] = [segment, other].map((each) => endOf(disk, `${folder}/${each.name}`, each.header));
  if (points !== others) return points! > others!;
  if (segment.isMisnamed !== other.isMisnamed) return other.isMisnamed;
  return segment.attempt < other.attempt;
}

function endOf(disk: Disk, path: string, header: FoundSegment["header"]): number {
  if (header === "damaged") return -1;
  const bytes = attempt(() => readFile(disk, path));
  if (!bytes) return -1;
  const { first, salt } = header;
  const seal = readSeal(bytes.subarray(Math.max(0, bytes.length - sealBytes)), salt);
  const options = { first, salt, limit: Number.POSITIVE_INFINITY, end: undefined, durable: 0 };
  return seal?.endSequence ?? scanSegment(bytes, options).endSequence;
}

function headerOf(disk: Disk, path: string, onError: (error: unknown) => void): FoundHeader | "newer" | "older" {
  try {
    const bytes = () => withFile(disk, path, "read", (file) => readPart(file, 0, segmentHeaderBytes));
    return withRetries(() => readSegmentHeader(bytes()));
  } catch (error) {
    if (diskErrorCode(error) === "EISDIR") return "folder";
    onError(error);
    return "unreadable";
  }
}
