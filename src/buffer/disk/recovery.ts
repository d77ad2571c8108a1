// Opens what a folder holds, whatever happened to it. Never fails for damage: what cannot be read is counted and set aside.
//
// What was written but never acknowledged may be there or not. So the end of the newest segment is cut at its last whole
// record, it is sealed there, and the log goes on in a new segment: nothing is ever written behind a torn end.
import { AgentError } from "../../core/errors.ts";
import { Accounts } from "./accounts.ts";
import { type Disk, type DiskFile, diskErrorCode, readFully } from "./disk.ts";
import { formatFileName, readFormatFile, writeFormatFile } from "./format-file.ts";
import type { Notes } from "./note.ts";
import { keepAside, moveAside } from "./quarantine.ts";
import type { Checksum } from "./record.ts";
import { readSeal, sealBytes } from "./seal.ts";
import { Segment } from "./segment.ts";
import { parseSegmentName, readSegmentHeader, type SegmentHeader, segmentHeaderBytes } from "./segment-header.ts";
import { scanSegment } from "./segment-index.ts";
import { mendSegment } from "./segment-mending.ts";
import { StateFile } from "./state-file.ts";

export interface RecoveryOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly checksum: Checksum;
  /** Integration ID of the configuration: what an empty buffer is bound to. */
  readonly integration: string;
  /** UUID for a new buffer, 32 hexadecimal digits. */
  readonly newStream: string;
  readonly note: Notes;
}

export interface Recovered {
  readonly stream: string;
  /** Whose points these are. */
  readonly integration: string;
  /** By sequence number. */
  readonly segments: Segment[];
  readonly accounts: Accounts;
  readonly uptime: number;
  readonly stateFile: StateFile;
}

/** Rejects with `BUFFER_NEWER` before anything was written. Throws what the disk throws where the folder cannot be used at all. */
export function recover(options: RecoveryOptions): Recovered {
  const { disk, folder, note } = options;
  const format = readFormatFile(disk, folder);
  if (format === "newer") throw newer(folder);
  const found = readHeaders(options);
  const stream = typeof format === "object" ? format.stream : (commonStream(found) ?? options.newStream);
  if (typeof format !== "object") {
    if (found.length > 0) note("warn", { part: "buffer", folder }, `${formatFileName} was rebuilt from the segments`);
    writeFormat(stream, options);
  }
  const { file: stateFile, state, damaged } = StateFile.open(disk, folder);
  const accounts = Accounts.from(state);
  const segments = placeInOrder(found, stream, options);

  const states = new Map(state?.segments.map((segment) => [segment.name, segment]));
  for (const segment of segments) {
    const known = states.get(segment.name);
    if (known?.generation !== segment.header.generation) continue;
    for (const coverage of [segment.settled, segment.taken]) {
      for (let i = 0; i < known.whole.length; i += 2) coverage.addWhole(known.whole[i]!, known.whole[i + 1]!);
      for (const { place, bounds } of known.series)
        for (let i = 0; i < bounds.length; i += 2) coverage.addSeries(place, bounds[i]!, bounds[i + 1]!);
    }
    segment.settledBySeries = known.settledBySeries;
  }
  settleAccounts(segments, accounts, state !== undefined, damaged, options);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const bound = state?.integration ?? segments.findLast((segment) => segment.points > 0)?.header.integration;
  const integration = bound === undefined || unsettled === 0 ? options.integration : bound;
  return { stream, integration, segments, accounts, uptime: state?.uptime ?? 0, stateFile };
}

interface Found {
  readonly name: string;
  readonly first: number;
  readonly attempt: number;
  readonly header: SegmentHeader | "damaged";
}

/** A disk that is full now can still be opened: the file is made again at the next start. */
function writeFormat(stream: string, { disk, folder, note }: RecoveryOptions): void {
  try {
    writeFormatFile(disk, folder, stream);
  } catch (error) {
    if (!["ENOSPC", "EDQUOT", "EIO"].includes(diskErrorCode(error))) throw error;
    note("warn", { part: "buffer", err: String(error) }, `${formatFileName} could not be written`);
  }
}

function newer(folder: string): AgentError {
  return new AgentError("BUFFER_NEWER", `the buffer in ${folder} was written by a newer version`);
}

function readHeaders({ disk, folder, note }: RecoveryOptions): Found[] {
  const found: Found[] = [];
  for (const name of disk.list(folder)) {
    const place = parseSegmentName(name);
    if (!place) continue;
    try {
      const header = withFile(disk, `${folder}/${name}`, (file) =>
        readSegmentHeader(readPart(file, 0, segmentHeaderBytes)),
      );
      if (header === "newer") throw newer(folder);
      found.push({ name, ...place, header });
    } catch (error) {
      if (error instanceof AgentError) throw error;
      // It stays where it is: another start may be able to read it.
      note("error", { part: "buffer", segment: name, err: String(error) }, "a segment cannot be read");
    }
  }
  return found.sort((a, b) => a.first - b.first || a.attempt - b.attempt);
}

function commonStream(found: readonly Found[]): string | undefined {
  for (const { header } of found) if (header !== "damaged") return header.stream;
  return undefined;
}

function placeInOrder(found: readonly Found[], stream: string, options: RecoveryOptions): Segment[] {
  const { disk, folder, note } = options;
  const own = found.filter(({ name, first, header }) => {
    if (header === "damaged" || (header.stream === stream && header.first === first)) return true;
    note("error", { part: "buffer", segment: name }, "a segment of another buffer was moved to quarantine");
    moveAside(disk, folder, name);
    return false;
  });
  return own.map((entry, i) => openSegment(entry, own[i + 1]?.first ?? Number.POSITIVE_INFINITY, stream, options));
}

function openSegment({ name, first, header }: Found, limit: number, stream: string, options: RecoveryOptions): Segment {
  const { disk, folder, checksum, integration, note } = options;
  const lost = { kind: "hot", salt: 0, stream, first, created: 0, generation: 0, integration } as const;
  const segment = new Segment(name, `${folder}/${name}`, header === "damaged" ? lost : header);
  withFile(disk, segment.path, (file) => {
    const size = file.size();
    segment.bytes = size;
    const tail = header === "damaged" ? new Uint8Array() : readPart(file, size - sealBytes, sealBytes);
    const seal = readSeal(tail, segment.header.salt, checksum);
    if (seal && seal.endSequence <= limit) {
      segment.sealed = true;
      segment.endSequence = seal.endSequence;
      segment.earliest = numberOr(seal.earliest);
      segment.latest = numberOr(seal.latest);
      segment.lastWall = seal.lastWall;
      segment.lastUptime = seal.lastUptime;
      return;
    }
    const bytes = readPart(file, 0, size);
    const salt = header === "damaged" ? undefined : header.salt;
    const index = scanSegment(bytes, { first, salt, limit, end: undefined, checksum });
    segment.bytes = index.endOffset;
    segment.sealed = index.sealed;
    segment.header = { ...segment.header, salt: index.salt ?? 0 };
    segment.endSequence = index.endSequence;
    if (index.sequences.length > 0) {
      segment.earliest = index.earliest.reduce((a, b) => Math.min(a, b));
      segment.latest = index.latest.reduce((a, b) => Math.max(a, b));
    }
    if (index.tornBytes > 0) {
      note(
        "warn",
        { part: "buffer", segment: name, bytes: index.tornBytes },
        "cut off a write that had not been finished",
      );
      keepAside(
        disk,
        folder,
        `${name}-${index.endOffset}.torn`,
        bytes.subarray(index.endOffset, index.endOffset + 65_536),
      );
    }
  });
  const headerLost = header === "damaged";
  if (segment.points > 0 && (headerLost || !segment.sealed)) {
    const error = mendSegment(segment, disk, checksum, { header: headerLost, seal: !segment.sealed });
    // It can be read all the same, and is scanned again after the next start.
    if (error !== undefined)
      note("warn", { part: "buffer", segment: name, err: error }, "a segment could not be mended");
  }
  segment.sealed = true;
  return segment;
}

/** Makes the books true again: what is neither there nor accounted for is lost, and said so. */
function settleAccounts(
  segments: readonly Segment[],
  accounts: Accounts,
  hadState: boolean,
  stateDamaged: boolean,
  { note }: RecoveryOptions,
): void {
  const logEnd = segments.at(-1)?.endSequence ?? accounts.next;
  if (!hadState) {
    accounts.next = logEnd;
    accounts.origin = segments[0]?.first ?? 0;
    if (stateDamaged)
      note("error", { part: "buffer" }, "the accounts were damaged: counts begin anew, points may be sent twice");
  }
  const durable = accounts.next;
  accounts.next = Math.max(durable, logEnd);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const lost = accounts.unexplained(unsettled);
  if (lost <= 0) return;
  if (!hadState) {
    // Segments go once all of them is settled or dropped: with the accounts gone, which of the two is not known.
    accounts.settled += lost;
    return;
  }
  const reason = hadState && logEnd < durable && segments.length > 0 ? "diskLied" : "missing";
  accounts.losses.add(reason, lost, undefined, undefined);
  note("error", { part: "buffer", points: lost, reason }, "points that had been stored are not there any more");
}

function withFile<T>(disk: Disk, path: string, use: (file: DiskFile) => T): T {
  const file = disk.open(path, "read");
  try {
    return use(file);
  } finally {
    file.close();
  }
}

function readPart(file: DiskFile, from: number, length: number): Uint8Array {
  if (from < 0) return new Uint8Array();
  const bytes = new Uint8Array(length);
  return bytes.subarray(0, readFully(file, bytes, from));
}

const numberOr = (value: number) => (Number.isNaN(value) ? undefined : value);
