// `tagferry buffer export`: the points of a buffer as CSV or NDJSON, however damaged it is.
import type { InspectedPoint } from "../../buffer/disk/inspector.ts";
import { epochMicros } from "../../core/point.ts";
import { formatTimestamp } from "../../wire/timestamp.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { count, csvCell, numberCell } from "../terminal/text.ts";
import { inspectBuffer, inspectedSegments, lostIn } from "./buffer.ts";

const exportFormats = ["csv", "ndjson"] as const;
type ExportFormat = (typeof exportFormats)[number];

export interface BufferExportOptions {
  readonly format: ExportFormat;
  /** Only what the service does not have, as far as the buffer has written that down. */
  readonly undelivered?: boolean;
}

/**
 * Writes the points in the order they were stored, within a record by input. Resolves with `failed`, after a last line
 * that says what is missing, where not all could be read. Rejects with `BUFFER_MISSING`, `BUFFER_NEWER` or `BUFFER_OLDER`.
 */
export async function bufferExport(
  directory: string,
  { format, undelivered = false }: BufferExportOptions,
  io: Console,
): Promise<ExitStatus> {
  const opened = inspectBuffer(directory);
  const { inspector } = opened;
  const line = format === "csv" ? csvLine : ndjsonLine;
  let exported = 0;
  let missing = 0;
  let unreadable = 0;
  if (format === "csv") await io.write("input,time,value\n");
  for await (const segment of inspectedSegments(opened, io)) {
    if (segment.error !== undefined) unreadable++;
    missing += lostIn(segment);
    let written = 0;
    for (const points of inspector.points(segment.name, !undelivered)) {
      written += points.length;
      if (points.length > 0 && !(await io.write(points.map(line).join("")))) return exitStatus.done;
      io.signal.throwIfAborted();
    }
    exported += written;
    // What a running agent freed in between is no damage; what has no name any more is.
    const there = undelivered ? segment.unsettledPoints : segment.points;
    if (written < there && inspector.segment(segment.name)) missing += there - written;
  }
  const whole = missing === 0 && unreadable === 0;
  const rest = [
    ...(missing > 0 ? [`${count(missing, "point")} cannot be read`] : []),
    ...(unreadable > 0 ? [`${count(unreadable, "segment")} cannot be read at all`] : []),
  ].join(", ");
  io.complain(
    `${count(exported, "point")} exported${whole ? "" : `; ${rest}: the buffer is damaged, see tagferry buffer verify`}`,
  );
  return whole ? exitStatus.done : exitStatus.failed;
}

function csvLine({ input, time, value }: InspectedPoint): string {
  return `${csvCell(input)},${formatTimestamp(epochMicros(time))},${numberCell(value)}\n`;
}

function ndjsonLine({ input, time, value }: InspectedPoint): string {
  return `{"input":${JSON.stringify(input)},"time":"${formatTimestamp(epochMicros(time))}","value":${numberCell(value)}}\n`;
}
