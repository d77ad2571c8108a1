// Finds the buffer that a command is to look into, and goes through its segments.
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { nodeDisk } from "../../buffer/disk/files/node-disk.ts";
import { BufferInspector, type InspectedSegment } from "../../buffer/disk/inspector.ts";
import { fileProblem } from "../../config/read-file.ts";
import { AgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import type { Console } from "../terminal/console.ts";
import { count } from "../terminal/figures.ts";
import { progressBar } from "../terminal/progress-bar.ts";

export interface OpenedBuffer {
  readonly folder: string;
  readonly inspector: BufferInspector;
}

/** `directory` is a data directory or the folder of its buffer. Throws `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`. */
export function inspectBuffer(directory: string): OpenedBuffer {
  const disk = nodeDisk();
  const given = resolve(directory);
  const folder = [given, join(given, "buffer")].find((candidate) => BufferInspector.isBuffer(candidate, disk));
  if (folder === undefined) throw new AgentError("BUFFER_MISSING", `${given} holds no buffer${why(given)}`);
  const inspector = new BufferInspector(folder, disk);
  inspector.checkVersion();
  return { folder, inspector };
}

function why(folder: string): string {
  try {
    nodeDisk().list(folder);
    return "";
  } catch (error) {
    return `: ${fileProblem(error).replace("such file", "such folder")}`;
  }
}

/** Every segment, oldest first, with a line of progress. Those that a running agent frees meanwhile are passed by. */
export async function* inspectedSegments(
  { inspector }: OpenedBuffer,
  io: Pick<Console, "progress" | "signal">,
): AsyncGenerator<InspectedSegment> {
  const names = inspector.names();
  for (const [i, name] of names.entries()) {
    io.progress(progressBar(i, names.length, "segments"));
    // Reading is synchronous: ^C gets its turn here.
    await setImmediate();
    io.signal.throwIfAborted();
    const segment = inspector.segment(name);
    if (segment) yield segment;
  }
  io.progress(undefined);
}

/** What of a segment cannot be read, in a line for each place. */
export function damageOf({ name, damage, error }: InspectedSegment): readonly string[] {
  if (error !== undefined) return [`${name}: the disk does not give it: ${error}`];
  return damage.map(({ from, to, earliest, latest, offset, bytes }) => {
    const lost = to > from ? `${count(to - from, "point")} lost${between(earliest, latest)}` : "no points lost";
    return `${name}: ${count(bytes, "byte")} damaged at ${offset}, ${lost}`;
  });
}

/** Points that its damage cost, as far as is known. */
export function lostIn({ damage }: InspectedSegment): number {
  return damage.reduce((sum, { from, to }) => sum + to - from, 0);
}

/** `, from … to …`, or nothing where that is not known. In microseconds. */
export function between(earliest: number | undefined, latest: number | undefined): string {
  if (earliest === undefined || latest === undefined) return "";
  return `, from ${formatTimestamp(epochMicros(earliest))} to ${formatTimestamp(epochMicros(latest))}`;
}
