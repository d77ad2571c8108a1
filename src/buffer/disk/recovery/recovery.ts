// Opens a folder in any condition. Damage never makes it fail: unreadable points are counted and quarantined.
//
// Writes that were never acknowledged may be present or missing. So the newest segment is truncated after its last
// intact record and sealed, and the log continues in a new segment. It never writes after a torn end.

import type { BufferState } from "../counters/buffer-state.ts";
import { PointCounters } from "../counters/point-counters.ts";
import type { RemovedRange } from "../counters/removed-ranges.ts";
import { type FoundState, StateFile } from "../counters/state-file.ts";
import { diskErrorCode, isFull, withRetries } from "../files/disk.ts";
import { formatFileName, parseSegmentName, readFormatFile, writeFormatFile } from "../format/segment-header.ts";
import type { LogEnvironment } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import {
  commonStream,
  type FoundFile,
  findFiles,
  hasStream,
  refuseOtherVersions,
} from "../segments/segment-finding.ts";
import { openSegments } from "../segments/segment-opening.ts";
import { applySettled, describes, reconcile } from "./reconciling.ts";

export interface RecoveryOptions extends LogEnvironment {
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
  const { states, slots } = StateFile.read(disk, folder);
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
  const stateFile = StateFile.open(disk, folder, states, current);
  // A single slot without segments means that the power failed while the buffer was first created.
  const stateDamaged = state === undefined && (found.length > 0 || slots > 1);
  const counters = PointCounters.from(state);
  const { segments, aside } = openSegments(found, { ...options, stream, counters, state });
  applyState(state, segments, options);
  const newest = parseSegmentName(state?.newest ?? "");
  const setAside = aside.includes(state?.newest ?? "");
  if (newest && !setAside && (segments.at(-1)?.first ?? -1) < newest.first)
    note(
      "error",
      { segment: state?.newest },
      "the newest segment is gone: how many points came after the last state is not known",
    );
  reconcile(segments, counters, { state, stateDamaged, setAside }, options.note);
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
  { disk, checksum, note }: RecoveryOptions,
): void {
  for (const segment of segments) {
    const known = state?.segments.find((each) => describes(each, segment));
    // A missing segment has no points left according to the state, but it has been found again.
    if (!known || isFoundAgain(state, segment)) continue;
    // Keep the salt, so that the next state matches this file, which may be readable by then.
    if (!segment.headerKnown) segment.header = { ...segment.header, salt: known.salt };
    try {
      withRetries(() => applySettled(segment, known, disk, checksum));
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
