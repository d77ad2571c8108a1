// The log, written by pino as JSON lines, or as readable text on a terminal.
import { type Logger as PinoLogger, pino } from "pino";
import { fileFailure, isAgentError } from "../../core/errors.ts";
import type { LogFields, Logger } from "../../core/runtime.ts";
import { visible } from "../../lib/text/visible.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogOptions {
  readonly level: LogLevel;
  readonly descriptor: number;
  /** Whether lines are formatted for people instead of machines. */
  readonly pretty: boolean;
  readonly fields: LogFields;
}

/** Lines as JSON, oldest first. */
export interface LogLines {
  readonly lines: readonly string[];
  /** How many lines there were so far, for the next question. */
  readonly next: number;
  /** Lines that were asked for and are no longer kept. */
  readonly missed: number;
}

export interface ClosableLogger extends Logger {
  flush(): void;
  /** The latest lines after the first `after` ones. */
  recentSince(after: number): LogLines;
}

/** When a stalled reader leaves this many bytes unread, lines are dropped to bound memory. */
const maxWaiting = 1024 * 1024;

export async function openLog({ level, descriptor, pretty, fields }: LogOptions): Promise<ClosableLogger> {
  const destination = pino.destination({ fd: descriptor, sync: false, maxLength: maxWaiting });
  // A closed reader (EPIPE) must not stop the agent.
  destination.on("error", () => {});
  const stream = pretty
    ? (await import("pino-pretty")).default({
        destination,
        ignore: "pid,hostname,name",
        translateTime: "HH:MM:ss.l",
        singleLine: true,
      })
    : destination;
  const recent = new RecentLines();
  const remembering = {
    write(line: string) {
      recent.add(line);
      stream.write(pretty ? inert(line) : line);
    },
  };
  const serializers = { err: (error: unknown) => withoutStack(error) ?? pino.stdSerializers.err(error as Error) }; // accepts any value
  const logger = pino({ level, base: fields, timestamp: pino.stdTimeFunctions.isoTime, serializers }, remembering);
  return {
    ...adapt(logger, {}),
    recentSince: (after) => recent.since(after),
    flush() {
      try {
        destination.flushSync();
      } catch {
        // The stream is not open yet or already closed, so there is nothing to flush.
      }
    },
  };
}

/** A failure that the program expects is not a defect of it. The operator needs the remedy, not a stack trace. */
function withoutStack(error: unknown): LogFields | undefined {
  if (isAgentError(error)) return { type: error.name, message: error.message, code: error.code, hint: error.hint };
  const failure = fileFailure(error);
  return failure && { type: "Error", ...failure, ...(error as NodeJS.ErrnoException) }; // only such errors have a file failure
}

/** Adds `bound` to every line. Children come from the root, since pino would repeat fields shared with a parent. */
function adapt(root: PinoLogger, bound: LogFields): Logger {
  const logger = root.child({ ...bound });
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    child: (fields) => adapt(root, { ...bound, ...fields }),
  };
}

/** In UTF-16 code units; for JSON lines this is close to bytes. */
const maxLength = 1024 * 1024;
const maxLines = 5_000;

/** The latest lines in memory, for support bundles, pages and export. Bounded in lines and in length. */
export class RecentLines {
  #lines: string[] = [];
  #length = 0;
  /** Number of cleared lines at the front. They are removed in batches, which is cheaper. */
  #forgotten = 0;
  #added = 0;

  add(line: string): void {
    this.#added++;
    this.#lines.push(line);
    this.#length += line.length;
    while (this.#length > maxLength || this.#lines.length - this.#forgotten > maxLines) {
      this.#length -= this.#lines[this.#forgotten]?.length ?? 0;
      this.#lines[this.#forgotten++] = "";
    }
    if (this.#forgotten < maxLines) return;
    this.#lines = this.#lines.slice(this.#forgotten);
    this.#forgotten = 0;
  }

  /** Lines without their ends. */
  since(after: number): LogLines {
    const first = this.#added - (this.#lines.length - this.#forgotten);
    // A page of another process may know more lines than this one has written.
    const from = after > this.#added ? 0 : after;
    const lines = this.#lines.slice(this.#forgotten + Math.max(0, from - first)).map((line) => line.trimEnd());
    return { lines, next: this.#added, missed: Math.max(0, first - from) };
  }
}

// Text from devices or the service must not control the terminal.

/** Line breaks that belong to the format of a stack trace. */
const stackEnd = /\n(?= {4}at |caused by: )/;

/** Escapes those characters (`\u001b`) in every text and key of a JSON line. Stack traces keep their line breaks. */
function inert(line: string): string {
  return `${JSON.stringify(written(JSON.parse(line)))}\n`;
}

function written(value: unknown, name?: string): unknown {
  if (typeof value === "string")
    return name === "stack" ? value.split(stackEnd).map(visible).join("\n") : visible(value);
  if (Array.isArray(value)) return value.map((inner: unknown) => written(inner));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [visible(key), written(inner, key)]));
}
