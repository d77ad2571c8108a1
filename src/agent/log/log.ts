// The log, written by pino: JSON lines, or readable ones on a terminal.
import { pino } from "pino";
import type { LogFields, Logger } from "../../core/runtime.ts";
import { inert } from "./inert-line.ts";
import { RecentLines } from "./recent-lines.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogOptions {
  readonly level: LogLevel;
  /** File descriptor of the stream the lines go to. */
  readonly descriptor: number;
  /** For people rather than for machines. */
  readonly pretty: boolean;
  /** On every line. */
  readonly fields: LogFields;
}

export interface ClosableLogger extends Logger {
  /** Writes out what waits. */
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
  const logger = pino({ level, base: fields, timestamp: pino.stdTimeFunctions.isoTime }, remembering);
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

/** The slice of pino that is used. */
interface PinoSlice {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: Record<string, unknown>): PinoSlice;
}

/** `bound` stands on every line. Children are made from the root: pino would write a field twice that parent and child have. */
function adapt(root: PinoSlice, bound: LogFields): Logger {
  const logger = root.child({ ...bound });
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    child: (fields) => adapt(root, { ...bound, ...fields }),
  };
}
