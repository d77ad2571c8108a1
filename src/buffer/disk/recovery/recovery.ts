// Opens a folder in any condition. Damage never makes it fail: unreadable points are counted and quarantined.
//
// Writes that were never acknowledged may be present or missing. So the newest segment is truncated after its last
// intact record and sealed, and the log continues in a new segment. It never writes after a torn end.

import { unsettledInRecords } from "../blocks/segment-losses.ts";
import { joinedSpan, type LossReason, type LostSpan, PointCounters } from "../counters/point-counters.ts";
import { RangeSet, type RemovedRange } from "../counters/ranges.ts";
import {
  type BufferState,
  type FoundState,
  openStateFile,
  readStates,
  type SegmentState,
  type StateFile,
} from "../counters/state-file.ts";
import { type Disk, diskErrorCode, isFull, type Notes, withRetries } from "../files/disk.ts";
import { formatFileName, parseSegmentName, readFormatFile, writeFormatFile } from "../format/segment-file.ts";
import { type LogEnvironment, loadIndex, type Segment, SegmentReader } from "../segments/segment.ts";
import {
  commonStream,
  type FoundFile,
  findFiles,
  hasStream,
  refuseOtherVersions,
} from "../segments/segment-finding.ts";
import { openSegments } from "../segments/segment-opening.ts";

interface RecoveryOptions extends LogEnvironment {
  readonly folder: string;
  /** Integration ID of the configuration, to which an empty buffer is bound. */
  readonly integration: string;
  /** UUID for a new buffer, 32 hexadecimal digits. */
  readonly newStream: string;
}

export interface Recovered {
  readonly stream: string;
  readonly integration: string;
  readonly segments: Segment[];
  readonly counters: PointCounters;
  readonly uptime: number;
  readonly stateFile: StateFile;
}

/** Throws `BUFFER_NEWER` or `BUFFER_OLDER` before any write, or the disk's error for an unusable folder. */
export function recover(options: RecoveryOptions): Recovered {
  const { disk, folder, note } = options;
  const format = withRetries(() => readFormatFile(disk, folder));
  const found = findFiles(options);
  refuseOtherVersions(folder, format, found);
  const { states, slots } = readStates(disk, folder);
  const written = typeof format === "object" ? format.stream : undefined;
  const stream = streamOf(written, found, states) ?? options.newStream;
  if (stream !== written) {
    // Log the creation, because the folder of an unmounted volume also looks empty.
    if (found.length === 0) note("info", { folder }, "made a new, empty buffer");
    if (found.length > 0) note("warn", { folder }, `${formatFileName} was rebuilt from the segments`);
    writeFormat(stream, options);
  }
  const current = states.find(({ state: each }) => each.stream === stream);
  const state = current?.state;
  const strangers = states.filter(({ state: each }) => each.stream !== stream).length;
  if (strangers > 0)
    note(state ? "warn" : "error", { slots: strangers }, "the state of another buffer was found and is not applied");
  const stateFile = openStateFile(disk, folder, states, current);
  // A single slot without segments means that the power failed while the buffer was first created.
  const stateDamaged = state === undefined && (found.length > 0 || slots > 1);
  const counters = PointCounters.from(state);
  const { segments, quarantined } = openSegments(found, { ...options, stream, counters, state });
  applyState(state, segments, options);
  const newest = parseSegmentName(state?.newest ?? "");
  const isQuarantined = quarantined.includes(state?.newest ?? "");
  if (newest && !isQuarantined && (segments.at(-1)?.first ?? -1) < newest.first)
    note(
      "error",
      { segment: state?.newest },
      "the newest segment is gone: how many points came after the last state is not known",
    );
  reconcile(segments, counters, { state, stateDamaged, isQuarantined }, options.note);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const bound = state?.integration ?? segments.findLast((segment) => segment.points > 0)?.header.integration;
  const integration = bound === undefined || unsettled === 0 ? options.integration : bound;
  return { stream, integration, segments, counters, uptime: state?.uptime ?? 0, stateFile };
}

/** UUID of the buffer: the one in FORMAT, unless segments and state agree on another one. Undefined: none was found. */
function streamOf(
  format: string | undefined,
  files: readonly FoundFile[],
  states: readonly FoundState[],
): string | undefined {
  const common = commonStream(files);
  const state = states.find(({ state: { stream } }) => common === undefined || stream === common)?.state.stream;
  if (format === undefined) return common ?? state;
  const isKnown = states.some(({ state: { stream } }) => stream === format) || hasStream(files, format);
  return isKnown || state === undefined || state !== common ? format : common;
}

function applyState(
  state: BufferState | undefined,
  segments: readonly Segment[],
  { disk, note }: RecoveryOptions,
): void {
  for (const segment of segments) {
    const known = state?.segments.find((each) => describes(each, segment));
    // A missing segment has no points left according to the state, but it has been found again.
    if (!known || isFoundAgain(state, segment)) continue;
    // Keep the salt, so that the next state matches this file, which may be readable by then.
    if (!segment.headerKnown) segment.header = { ...segment.header, salt: known.salt };
    try {
      withRetries(() => applySettled(segment, known, disk));
    } catch (error) {
      note("error", { segment: segment.name, err: String(error) }, "a segment cannot be read");
    }
  }
}

function isFoundAgain(state: BufferState | undefined, { first, endSequence }: Segment): boolean {
  const isPart = (range: RemovedRange) => range.first < endSequence && range.end > first;
  return state?.removed.some((range) => range.reason === "missing" && isPart(range)) ?? false;
}

/** A full disk does not prevent the start: the next start writes the file again. */
function writeFormat(stream: string, { disk, folder, note }: RecoveryOptions): void {
  try {
    writeFormatFile(disk, folder, stream);
  } catch (error) {
    if (!isFull(error) && diskErrorCode(error) !== "EIO") throw error;
    note("warn", { err: String(error) }, `${formatFileName} could not be written`);
  }
}

// Reconciles the counters with the segments found at startup. Points that are neither stored nor accounted for are
// recorded as lost. Stored points that count as lost or settled are removed from these counts.
interface FoundCounters {
  readonly state: BufferState | undefined;
  readonly stateDamaged: boolean;
  readonly isQuarantined: boolean;
}

/** `segments`: ordered by sequence number, with the stored state applied. */
export function reconcile(
  segments: readonly Segment[],
  counters: PointCounters,
  { state, stateDamaged, isQuarantined }: FoundCounters,
  note: Notes,
): void {
  const logEnd = segments.at(-1)?.endSequence ?? counters.next;
  if (!state) {
    counters.next = logEnd;
    counters.origin = segments[0]?.first ?? 0;
    if (stateDamaged)
      note("error", {}, "the counters are damaged or missing: counts start at zero, points may be sent twice");
  }
  const durable = counters.next;
  counters.next = Math.max(durable, logEnd);
  includeEarlier(segments, counters);
  for (const segment of segments) restoreFound(segment, counters);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const lost = counters.unexplained(unsettled);
  // A power cut undid the removal or compaction of a segment: its settled points are delivered again.
  if (lost < 0) takeBackAny(counters, counters.unsettle(-lost));
  // Without a state, it is unknown whether removed points were settled or lost: they count as settled.
  if (lost > 0 && !state) counters.settled += lost;
  if (lost > 0 && state) {
    let reason: LossReason = "missing";
    if (isQuarantined && (segments.at(-1)?.endSequence ?? 0) < durable) reason = "damaged";
    else if (logEnd < durable && segments.length > 0) reason = "diskLied";
    counters.losses.add(reason, { points: lost, ...missingSpan(segments, durable, state) });
    note("error", { points: lost, reason }, "stored points are missing");
    noteHoles(segments, counters, state, lost, reason);
  } else noteHoles(segments, counters, state, 0, "");
}

/**
 * Includes segments from before the last reset of the counters that were found again. Other points of that time count
 * as settled, since their fate is unknown.
 */
function includeEarlier(segments: readonly Segment[], counters: PointCounters): void {
  const first = segments[0]?.first ?? counters.origin;
  if (first >= counters.origin) return;
  let points = 0;
  for (const segment of segments) points += Math.max(0, Math.min(segment.endSequence, counters.origin) - segment.first);
  counters.settled += counters.origin - first - points;
  counters.origin = first;
}

/** Restores the points of a removed segment that was found again, or of the longer original of a compacted one. */
function restoreFound(segment: Segment, counters: PointCounters): void {
  const { first, endSequence, settled } = segment;
  let left = segment.unsettledPoints;
  for (const range of counters.removed.within(first, endSequence)) {
    const [from, to] = [Math.max(first, range.first), Math.min(endSequence, range.end)];
    const unsettled = Math.min(left, to - from - settled.whole.countIn(from, to));
    left -= unsettled;
    if (unsettled > 0) counters.restore(from, to, unsettled);
  }
}

/** Takes `points` back from the losses of any reason, if the state does not record which points were lost. */
function takeBackAny({ losses }: PointCounters, points: number): void {
  let left = points;
  for (const loss of losses.list()) {
    const found = Math.min(left, loss.points);
    losses.takeBack(loss.reason, found);
    left -= found;
  }
}

/** Records the numbers in no segment as removed. Up to `lost` of their points count as lost, unless settled. */
function noteHoles(
  segments: readonly Segment[],
  { origin, next, removed }: PointCounters,
  state: BufferState | undefined,
  lost: number,
  reason: string,
): void {
  let left = lost;
  let from = origin;
  const ends = [...segments.filter(({ points }) => points > 0), { first: next, endSequence: next }];
  for (const { first, endSequence } of ends) {
    for (const gap of removed.gapsIn(from, Math.max(from, first))) {
      const begun = state?.starts.filter((start) => gap.first < start && start < gap.end) ?? [];
      // One range per segment, since each segment may be found again separately.
      for (const [i, start] of [gap.first, ...begun].entries()) {
        const end = begun[i] ?? gap.end;
        const points = Math.min(left, end - start - settledIn(start, end, state?.segments ?? []));
        removed.add(start, end, points, reason);
        left -= points;
      }
    }
    from = Math.max(from, endSequence);
  }
}

function settledIn(first: number, end: number, states: readonly SegmentState[]): number {
  let points = 0;
  for (const { name, whole, settledBySeries } of states) {
    const begin = parseSegmentName(name)?.first ?? -1;
    points += new RangeSet(whole).countIn(first, end);
    // The sequence numbers of points settled by single series are not known. They count at the start of the segment.
    if (first <= begin && begin < end) points += settledBySeries;
  }
  return Math.max(0, Math.min(points, end - first));
}

/**
 * The time range of the missing points, from the state and the segments around the holes. It may be too wide but not
 * too narrow. `durable`: the log reached at least this sequence number.
 */
function missingSpan(segments: readonly Segment[], durable: number, state: BufferState) {
  let span: LostSpan = { points: 0, from: undefined, to: undefined };
  const note = (before: Segment | undefined, after: Segment | undefined) => {
    const [from, to] = [before?.latest ?? state.oldest, after?.earliest ?? state.latest];
    span = joinedSpan(span, { points: 0, from, to });
  };
  const held = segments.filter(({ points }) => points > 0);
  const [first] = held;
  // Before the oldest segment, unsettled points are missing only if `state.oldest` is earlier.
  if (first?.earliest !== undefined && state.oldest !== undefined && state.oldest < first.earliest)
    note(undefined, first);
  for (const [i, segment] of held.entries()) {
    const next = held[i + 1];
    if ((next?.first ?? durable) > segment.endSequence) note(segment, next);
  }
  if (!first) note(undefined, undefined);
  const { from = Infinity, to = -Infinity } = span;
  return from <= to ? { from, to } : { from: undefined, to: undefined };
}

/** Whether a stored state belongs to this file, which may have been renamed. A replaced file has another salt. */
export function describes(state: SegmentState, { name, first, header, headerKnown }: Segment): boolean {
  if (!headerKnown) return state.name === name;
  return state.salt === header.salt && parseSegmentName(state.name)?.first === first;
}

/**
 * Applies the settled ranges, cut at the end of the segment. If some exceeded it, counts the points of single series
 * from the readable records. Damaged points count as settled here and appear as lost in the counters.
 */
function applySettled(segment: Segment, state: SegmentState, disk: Disk): void {
  const { first, endSequence } = segment;
  let isWhole = true;
  for (const coverage of [segment.settled, segment.taken]) isWhole = coverage.restore(state, first, endSequence);
  segment.settledPoints = segment.settled.whole.count + state.settledBySeries;
  if (!isWhole) recount(segment, disk);
}

function recount(segment: Segment, disk: Disk): void {
  segment.settledPoints = segment.settled.whole.count;
  if (!segment.settled.hasSeries) return;
  const index = loadIndex(disk, segment, Number.POSITIVE_INFINITY);
  using reader = new SegmentReader(disk, segment, index, true);
  const writeOff = (from: number, to: number) => segment.writeOff(from, to);
  const unsettled = unsettledInRecords(segment, index, reader, writeOff);
  for (const { from, to } of index.damage) writeOff(from, to);
  segment.settledPoints = segment.points - unsettled;
}
