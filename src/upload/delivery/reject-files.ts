// The files of refused points as others than the uploader use them: read, counted by reason, taken out to be sent again.
//
// `rejects.ndjson` is written by the uploader, `rejects.1.ndjson` is the one before it. `rejects.retry.ndjson` is there
// while the points in it are sent again, and afterwards only where that was killed on the way.
import { type FileHandle, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { isInputId } from "../../core/point.ts";
import { syncName, writeAtomically } from "../../lib/atomic-file.ts";
import { attempt } from "../../lib/attempt.ts";

const rejectLine = z.object({
  at: z.union([z.string(), z.number()]).optional(),
  input: z.string().refine(isInputId),
  /** RFC 3339; microseconds where that cannot be written so. */
  time: z.union([z.string(), z.number()]),
  /** A text where it is no finite number. */
  value: z.union([z.number(), z.string()]),
  code: z.number().optional(),
  reason: z.string(),
});
export type RejectLine = z.output<typeof rejectLine>;

export class RejectFiles {
  readonly #folder: string;

  /** `stateDir`: the uploader's. */
  constructor(stateDir: string) {
    this.#folder = stateDir;
  }

  /** Where the uploader writes them. */
  get path(): string {
    return join(this.#folder, "rejects.ndjson");
  }

  get #retry(): string {
    return join(this.#folder, "rejects.retry.ndjson");
  }

  get #older(): string {
    return join(this.#folder, "rejects.1.ndjson");
  }

  /** All of them, oldest first; undefined for a line that cannot be read. Rejects as `node:fs` does, but not for files that are not there. */
  async *lines(): AsyncGenerator<RejectLine | undefined> {
    for (const file of [this.#retry, this.#older, this.path])
      for await (const text of linesOf(file)) if (text !== "") yield parse(text);
  }

  /** The latest of them, as many as fit into `bytes`: what a page may ask for again and again. */
  async *latest(bytes: number): AsyncGenerator<RejectLine | undefined> {
    for (const file of [this.#older, this.path])
      for await (const text of linesOf(file, Math.floor(bytes / 2))) if (text !== "") yield parse(text);
  }

  /**
   * Moves `lines`, which are all that can be read, to where a kill does not lose them while they are sent again. The others
   * stay: a person may make something of them.
   */
  async takeOut(lines: readonly RejectLine[]): Promise<void> {
    let unreadable = "";
    for (const file of [this.#retry, this.#older, this.path])
      for await (const text of linesOf(file)) if (text !== "" && !parse(text)) unreadable += `${text}\n`;
    await writeAtomically(this.#retry, textOf(lines));
    if (unreadable === "") await rm(this.#older, { force: true });
    else await writeAtomically(this.#older, unreadable);
    await rm(this.path, { force: true });
  }

  /** Ends what `takeOut` began: `rest` is refused as before. */
  async putBack(rest: readonly RejectLine[]): Promise<void> {
    if (rest.length > 0) {
      await using file = await open(this.#older, "a", 0o600);
      await file.appendFile(textOf(rest));
      await file.datasync();
      await syncName(this.#older);
    }
    await rm(this.#retry, { force: true });
  }

  /** Deletes them all. */
  async drop(): Promise<void> {
    for (const file of [this.#retry, this.#older, this.path]) await rm(file, { force: true });
  }
}

/** Lines of a file, of the last `bytes` of it if given; a line that begins before them is left out. */
async function* linesOf(path: string, bytes = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  await using opened = file;
  const start = Math.max(0, (await opened.stat()).size - bytes);
  let whole = start === 0;
  for await (const line of opened.readLines({ start })) {
    if (whole) yield line;
    whole = true;
  }
}

function parse(text: string): RejectLine | undefined {
  return attempt(() => rejectLine.safeParse(JSON.parse(text)).data);
}

function textOf(lines: readonly RejectLine[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

export interface RejectReason {
  /** JSON-RPC error or HTTP status; undefined: they could not be sent at all. */
  readonly code: number | undefined;
  readonly reason: string;
  readonly points: number;
  /** Points by Input ID. */
  readonly inputs: ReadonlyMap<string, number>;
  /** Times of the first and the last of the points, RFC 3339. */
  readonly earliest: string | undefined;
  readonly latest: string | undefined;
}

export interface RejectReasons {
  /** Most points first. */
  readonly reasons: readonly RejectReason[];
  readonly points: number;
  /** Lines that cannot be read. */
  readonly unreadable: number;
}

/** `lines`: as `RejectFiles` gives them. Rejects as they do. */
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

/** Each answer of the service has a trace of its own: the reason is the same all the same. */
function withoutTrace(reason: string): string {
  return reason.replace(/, trace [\w-]+/, "");
}
