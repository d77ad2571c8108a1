// Opens what a folder holds, whatever happened to it. Never fails for damage: what cannot be read is counted and set aside.
//
// What was written but never acknowledged may be there or not. So the end of the newest segment is cut at its last whole
// record, it is sealed there, and the log goes on in a new segment: nothing is ever written behind a torn end.
import { AgentError } from "../../core/errors.ts";
import { Accounts } from "./accounts.ts";
import type { BufferState } from "./buffer-state.ts";
import { type Disk, diskErrorCode, isFull, withRetries } from "./disk.ts";
import { formatFileName, readFormatFile, writeFormatFile } from "./format-file.ts";
import type { LossReason } from "./loss-ledger.ts";
import { missingSpan } from "./missing-span.ts";
import type { Notes } from "./note.ts";
import type { Checksum } from "./record.ts";
import type { Segment } from "./segment.ts";
import { commonStream, type FoundFile, findFiles, hasStream } from "./segment-finding.ts";
import { parseSegmentName } from "./segment-header.ts";
import { openSegments } from "./segment-opening.ts";
import { applySettled, describes } from "./settled-state.ts";
import { type FoundState, StateFile } from "./state-file.ts";

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
  const format = withRetries(() => readFormatFile(disk, folder));
  if (format === "newer") throw newer(folder);
  const found = findFiles(options);
  const { states, slots } = StateFile.read(disk, folder);
  const written = typeof format === "object" ? format.stream : undefined;
  const stream = streamOf(written, found, states) ?? options.newStream;
  if (stream !== written) {
    // Said aloud, as a volume that is not mounted looks like this.
    if (found.length === 0) note("info", { part: "buffer", folder }, "made a new, empty buffer");
    if (found.length > 0) note("warn", { part: "buffer", folder }, `${formatFileName} was rebuilt from the segments`);
    writeFormat(stream, options);
  }
  const current = states.find(({ state: each }) => each.stream === stream);
  const state = current?.state;
  const strangers = states.filter(({ state: each }) => each.stream !== stream).length;
  if (strangers > 0)
    note(
      state ? "warn" : "error",
      { part: "buffer", slots: strangers },
      "the state of another buffer was found and is not applied",
    );
  const stateFile = StateFile.open(disk, folder, states, current);
  // One slot and no segment: the power failed while the buffer was made for the first time.
  const stateDamaged = state === undefined && (found.length > 0 || slots > 1);
  const accounts = Accounts.from(state);
  const hadState = state !== undefined;
  const { segments, aside } = openSegments(found, { ...options, stream, durable: accounts.next, hadState });
  applyState(state, segments, options);
  const newest = parseSegmentName(state?.newest ?? "");
  const setAside = aside.includes(state?.newest ?? "");
  if (newest && !setAside && (segments.at(-1)?.first ?? -1) < newest.first)
    note(
      "error",
      { part: "buffer", segment: state?.newest },
      "the newest segment is gone: how many points came after the last state is not known",
    );
  settleAccounts(segments, accounts, { state, stateDamaged, setAside }, options);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const bound = state?.integration ?? segments.findLast((segment) => segment.points > 0)?.header.integration;
  const integration = bound === undefined || unsettled === 0 ? options.integration : bound;
  return { stream, integration, segments, accounts, uptime: state?.uptime ?? 0, stateFile };
}

/** UUID of the buffer: that of FORMAT, unless all the rest names another one. Undefined: nothing names any. */
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
    if (!known) continue;
    try {
      withRetries(() => applySettled(segment, known, disk, checksum));
    } catch (error) {
      note("error", { part: "buffer", segment: segment.name, err: String(error) }, "a segment cannot be read");
    }
  }
}

/** A disk that is full now can still be opened: the file is made again at the next start. */
function writeFormat(stream: string, { disk, folder, note }: RecoveryOptions): void {
  try {
    writeFormatFile(disk, folder, stream);
  } catch (error) {
    if (!isFull(error) && diskErrorCode(error) !== "EIO") throw error;
    note("warn", { part: "buffer", err: String(error) }, `${formatFileName} could not be written`);
  }
}

function newer(folder: string): AgentError {
  return new AgentError("BUFFER_NEWER", `the buffer in ${folder} was written by a newer version`);
}

/** Makes the books true again: what is neither there nor accounted for is lost, and said so. */
function settleAccounts(
  segments: readonly Segment[],
  accounts: Accounts,
  /** `setAside`: the newest file was moved to quarantine. */
  { state, stateDamaged, setAside }: { state: BufferState | undefined; stateDamaged: boolean; setAside: boolean },
  { note }: RecoveryOptions,
): void {
  const logEnd = segments.at(-1)?.endSequence ?? accounts.next;
  if (!state) {
    accounts.next = logEnd;
    accounts.origin = segments[0]?.first ?? 0;
    if (stateDamaged)
      note(
        "error",
        { part: "buffer" },
        "the accounts are damaged or gone: counts begin anew, points may be sent twice",
      );
  }
  const durable = accounts.next;
  accounts.next = Math.max(durable, logEnd);
  const unsettled = segments.reduce((sum, segment) => sum + segment.unsettledPoints, 0);
  const lost = accounts.unexplained(unsettled);
  // Settled points are there again: a removal or a compaction did not outlive a power cut. They are delivered once more.
  const again = Math.min(accounts.settled, Math.max(0, -lost));
  accounts.settled -= again;
  if (lost < 0) accounts.refused = Math.max(0, accounts.refused + lost + again);
  if (lost <= 0) return;
  if (!state) {
    // Segments go once all of them is settled or dropped: with the accounts gone, which of the two is not known.
    accounts.settled += lost;
    return;
  }
  let reason: LossReason = "missing";
  if (setAside && (segments.at(-1)?.endSequence ?? 0) < durable) reason = "damaged";
  else if (logEnd < durable && segments.length > 0) reason = "diskLied";
  accounts.losses.add(reason, { points: lost, ...missingSpan(segments, durable, state) });
  note("error", { part: "buffer", points: lost, reason }, "stored points are missing");
}
