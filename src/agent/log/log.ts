// The log, written by pino: JSON lines, or readable ones on a terminal.
import { type Logger as PinoLogger, pino } from "pino";
import { fileFailure } from "../../core/errors.ts";
import type { LogFields, Logger } from "../../core/runtime.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogOptions {
  readonly level: LogLevel;
  /** File descriptor of the stream the lines go to. */
  readonly descriptor: number;
  /** For people rather than for machines. */
  readonly pretty: boolean;
  readonly fields: LogFields;
}

export interface ClosableLogger extends Logger {
  flush(): void;
  /** The latest lines, oldest first, each one JSON. */
  recent(): readonly string[];
}

/** Beyond this many bytes that a stalled reader has not taken, lines are dropped: the log must never fill the memory. */
const maxWaiting = 1024 * 1024;

export async function openLog({ level, descriptor, pretty, fields }: LogOptions): Promise<ClosableLogger> {
  const destination = pino.destination({ fd: descriptor, sync: false, maxLength: maxWaiting });
  // A reader that went away (EPIPE) costs the log, not the agent.
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
  const serializers = { err: (error: unknown) => withoutStack(error) ?? pino.stdSerializers.err(error as Error) }; // takes anything
  const logger = pino({ level, base: fields, timestamp: pino.stdTimeFunctions.isoTime, serializers }, remembering);
  return {
    ...adapt(logger, {}),
    recent: () => recent.lines(),
    flush() {
      try {
        destination.flushSync();
      } catch {
        // Not open yet or closed already: there is nothing that could be written.
      }
    },
  };
}

/** A failure of a file or folder is no defect of the program: the operator needs to know what to do, not where it was noticed. */
function withoutStack(error: unknown): LogFields | undefined {
  const failure = fileFailure(error);
  return failure && { type: "Error", ...failure, ...(error as NodeJS.ErrnoException) }; // only these have such a failure
}

/** `bound` stands on every line. Children are made from the root: pino would write a field twice that parent and child have. */
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

/** In UTF-16 code units, which JSON lines hardly exceed in bytes. */
const maxLength = 1024 * 1024;
const maxLines = 5_000;

/** The latest lines, kept in memory for support bundles. Bounded in lines and in bytes. */
class RecentLines {
  #lines: string[] = [];
  #length = 0;
  /** Lines at the front that were forgotten; cut off now and then, which is cheaper than each time. */
  #forgotten = 0;

  add(line: string): void {
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

  /** Oldest first, without line ends. */
  lines(): readonly string[] {
    return this.#lines.slice(this.#forgotten).map((line) => line.trimEnd());
  }
}

// What a device or the service gave as text must not be obeyed by a terminal.

/** Control characters of both sets, and those that turn the direction of writing or end a line. */
const obeyed = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** Ends of lines that a stack has of itself. */
const stackEnd = /\n(?= {4}at |caused by: )/;

/**
 * A line of JSON in which those are written out in every text (`\u001b`), names included. The lines of a stack stay
 * lines: they are shown indented.
 */
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

function visible(text: string): string {
  return text.replace(obeyed, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
