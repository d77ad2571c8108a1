// Files of refused points, for readers other than the uploader: read, count by reason, and take out for a retry.
//
// The uploader writes `rejects.ndjson` and rotates it to `rejects.1.ndjson`. `rejects.retry.ndjson` holds points during
// a retry. Later it exists only if the retry was killed.
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { codeOf } from "../../core/errors.ts";
import { isInputId } from "../../core/point.ts";
import { syncName, writeAtomically } from "../../lib/files/atomic-file.ts";
import { exists } from "../../lib/files/paths.ts";
import { attempt } from "../../lib/flow/attempt.ts";

const rejectLine = z.object({
  at: z.union([z.string(), z.number()]).optional(),
  input: z.string().refine(isInputId),
  /** RFC 3339, or microseconds if that cannot represent the time. */
  time: z.union([z.string(), z.number()]),
  /** A text if the value is not finite. */
  value: z.union([z.number(), z.string()]),
  code: z.number().optional(),
  reason: z.string(),
});
export type RejectLine = z.output<typeof rejectLine>;

export const newLine = 10;
/** Of text in memory, in UTF-16 code units. */
const pieceLength = 64 * 1_024;

export class RejectFiles {
  readonly #folder: string;

  /** `stateDir`: folder of the uploader. */
  constructor(stateDir: string) {
    this.#folder = stateDir;
  }

  get path(): string {
    return join(this.#folder, "rejects.ndjson");
  }

  get #retry(): string {
    return join(this.#folder, "rejects.retry.ndjson");
  }

  get #older(): string {
    return join(this.#folder, "rejects.1.ndjson");
  }

  /**
   * All rejects. Undefined: an unreadable line. Rejects as `node:fs` does; missing files are empty. Of a retry, which may
   * run, the points that it leaves come last, and those that were refused again come once, with the new reason.
   */
  async *lines(): AsyncGenerator<RejectLine | undefined> {
    // Opened first, since the retry may end meanwhile: it removes its file after it has put back what is left.
    await using retry = await opened(this.#retry);
    const again = new Set<string>();
    for await (const line of this.newLines()) {
      if (retry && line) again.add(keyOf(line));
      yield line;
    }
    if (!retry) return;
    for await (const text of retry.readLines()) {
      const line = parse(text);
      if (text !== "" && !(line && again.has(keyOf(line)))) yield line;
    }
  }

  /** The latest rejects within `bytes`, for pages that request them often. */
  async *latest(bytes: number): AsyncGenerator<RejectLine | undefined> {
    for (const file of [this.#older, this.path])
      for await (const text of linesOf(file, Math.floor(bytes / 2))) if (text !== "") yield parse(text);
  }

  /** Moves all readable rejects to the retry file, where a kill loses none. */
  async takeOut(): Promise<void> {
    const all = [this.#retry, this.#older, this.path];
    let unreadable = "";
    for await (const piece of piecesOf(all, (line) => !line)) unreadable += piece;
    const readable = piecesOf(all, (line) => line !== undefined);
    await writeAtomically(this.#retry, readable);
    if (unreadable === "") await rm(this.#older, { force: true });
    else await writeAtomically(this.#older, unreadable);
    await rm(this.path, { force: true });
  }

  /**
   * Ends a retry that was killed. Points that were refused again are in the other files already; the others are put
   * back, since the service may not have decided on them. Call it while no retry runs. Rejects as `node:fs` does.
   */
  async recover(): Promise<void> {
    if (!(await exists(this.#retry))) return;
    const again = new Set<string>();
    for await (const line of this.newLines()) if (line) again.add(keyOf(line));
    await this.putBack((line) => (again.has(keyOf(line)) ? undefined : line));
  }

  /** Lines written since `takeOut`. Undefined: an unreadable line. */
  newLines(): AsyncGenerator<RejectLine | undefined> {
    return this.latest(Number.POSITIVE_INFINITY);
  }

  /** Completes a retry. `rest` maps the lines of the retry file that are refused again. Default: none. */
  async putBack(restOf?: (line: RejectLine) => RejectLine | undefined): Promise<void> {
    const rest = piecesOf(restOf ? [this.#retry] : [], (line) => line && restOf?.(line));
    const first = await rest.next();
    if (first.done !== true) {
      await using file = await open(this.#older, "a+", 0o600);
      const { size } = await file.stat();
      await file.appendFile((await endsInLine(file, size)) ? first.value : `\n${first.value}`);
      await file.appendFile(rest);
      await file.datasync();
      await syncName(this.#older);
    }
    await rm(this.#retry, { force: true });
  }

  async drop(): Promise<void> {
    for (const file of [this.#retry, this.#older, this.path]) await rm(file, { force: true });
  }
}

/** False: a crash truncated the last line, so a newline must precede the next one. */
export async function endsInLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === newLine;
}

function keyOf({ input, time }: RejectLine): string {
  return JSON.stringify([input, time]);
}

/** Undefined: there is no such file. */
async function opened(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Lines of a file, or complete lines in its last `bytes`. */
async function* linesOf(path: string, bytes = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  await using file = await opened(path);
  if (!file) return;
  const start = Math.max(0, (await file.stat()).size - bytes);
  let whole = start === 0;
  for await (const line of file.readLines({ start })) {
    if (whole) yield line;
    whole = true;
  }
}

function parse(text: string): RejectLine | undefined {
  return attempt(() => rejectLine.safeParse(JSON.parse(text)).data);
}

/**
 * The text of the lines that `choose` selects with true or replaces, in pieces, since the files may have 32 MiB.
 */
async function* piecesOf(
  files: readonly string[],
  choose: (line: RejectLine | undefined) => RejectLine | boolean | undefined,
): AsyncGenerator<string, void> {
  let piece = "";
  for (const file of files)
    for await (const text of linesOf(file)) {
      if (text === "") continue;
      const chosen = choose(parse(text));
      if (!chosen) continue;
      piece += `${chosen === true ? text : JSON.stringify(chosen)}\n`;
      if (piece.length < pieceLength) continue;
      yield piece;
      piece = "";
    }
  if (piece !== "") yield piece;
}

export interface RejectReason {
  /** JSON-RPC error or HTTP status. Undefined: the points could not be sent. */
  readonly code: number | undefined;
  readonly reason: string;
  readonly points: number;
  /** Input ID → number of points. */
  readonly inputs: ReadonlyMap<string, number>;
  /** Times of the earliest and latest point, RFC 3339. */
  readonly earliest: string | undefined;
  readonly latest: string | undefined;
}

export interface RejectReasons {
  /** Most points first. */
  readonly reasons: readonly RejectReason[];
  readonly points: number;
  readonly unreadable: number;
}

/** Groups `lines` by reason. Rejects as the iterator does. */
export async function countRejects(lines: AsyncIterable<RejectLine | undefined>): Promise<RejectReasons> {
  const groups = new Map<string, Group>();
  let points = 0;
  let unreadable = 0;
  for await (const line of lines) {
    if (!line) {
      unreadable++;
      continue;
    }
    points++;
    const reason = withoutTrace(line.reason);
    const key = `${line.code} ${reason}`;
    const group = groups.get(key) ?? newGroup(line, reason);
    groups.set(key, group);
    group.points++;
    group.inputs.set(line.input, (group.inputs.get(line.input) ?? 0) + 1);
    if (typeof line.time !== "string") continue;
    if (group.earliest === undefined || line.time < group.earliest) group.earliest = line.time;
    if (group.latest === undefined || line.time > group.latest) group.latest = line.time;
  }
  return { reasons: [...groups.values()].toSorted((a, b) => b.points - a.points), points, unreadable };
}

interface Group extends RejectReason {
  points: number;
  readonly inputs: Map<string, number>;
  earliest: string | undefined;
  latest: string | undefined;
}

function newGroup({ code }: RejectLine, reason: string): Group {
  return { code, reason, points: 0, inputs: new Map(), earliest: undefined, latest: undefined };
}

/** Removes the trace ID of the answer, so that equal reasons can be grouped. */
function withoutTrace(reason: string): string {
  return reason.replace(/, trace [\w-]+/, "");
}
