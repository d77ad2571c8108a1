// A serial port as a byte stream. Only this file uses the library.
import { AgentError, reasonOf } from "../../../core/errors.ts";
import type { Endpoint, SerialLine } from "../config/endpoint.ts";
import { longestReply, type UnitRequest } from "../config/pdu.ts";
import { type ByteStream, byteStream } from "./byte-stream.ts";

interface Port {
  open(done: (error: Error | null) => void): void;
  close(done: (error: Error | null) => void): void;
  write(data: Buffer): unknown;
  on(event: "data", listener: (chunk: Buffer) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "close", listener: (error: Error | null) => void): unknown;
}

/** On Node 26, received bytes wait for another event to wake the loop (serialport/node-serialport#3148). */
const wakeEveryMs = 5;

/** Opens the port exclusively. Rejects with `SOURCE_UNREACHABLE` or with `signal.reason`. */
export async function openSerial(line: SerialLine, signal: AbortSignal): Promise<ByteStream> {
  signal.throwIfAborted();
  const { SerialPort } = await import("serialport").catch((cause: unknown) => {
    const why = reasonOf(cause);
    throw new AgentError("SOURCE_UNREACHABLE", `${line.path}: the package serialport cannot be loaded: ${why}`, {
      cause,
    });
  });
  const { path, baudRate, dataBits, parity, stopBits } = line;
  const port: Port = new SerialPort({ path, baudRate, dataBits, parity, stopBits, lock: true, autoOpen: false });
  let isOpen = true;
  let waking: NodeJS.Timeout | undefined;
  const { stream, data, lose } = byteStream(
    (bytes) => port.write(Buffer.from(bytes)),
    async (isLost) => {
      isOpen = false;
      clearInterval(waking);
      if (!isLost) await new Promise<void>((resolve) => port.close(() => resolve()));
    },
  );
  const unreachable = (text: string, cause: unknown, hint = {}) =>
    new AgentError("SOURCE_UNREACHABLE", `${path}: ${text}`, { cause, ...hint });
  port.on("error", (error) => lose(unreachable(error.message, error)));
  port.on("close", (error) => lose(unreachable("the serial port is gone", error)));
  port.on("data", data);
  await new Promise<void>((resolve, reject) =>
    port.open((error) => (error ? reject(unreachable(inWords(error.message), error, { hint: ports })) : resolve())),
  );
  if (signal.aborted) {
    await stream[Symbol.asyncDispose]();
    throw signal.reason;
  }
  return {
    ...stream,
    awaiting(yes) {
      clearInterval(waking);
      waking = yes && isOpen ? setInterval(() => {}, wakeEveryMs) : undefined;
    },
  };
}

const ports =
  "ls /dev/serial/by-id lists the ports, on Windows the Device Manager; the user of the agent must be in the group of the port, and no other program may hold it";

/** An error of the port on Linux, macOS or Windows. */
export function inWords(message: string): string {
  // For a path with a folder, such as /dev/ttyUSB0, Windows reports only the number of the error.
  if (/no such file|ENOENT|file not found|error code 3$/i.test(message)) return "there is no such serial port";
  if (/permission|EACCES/i.test(message))
    return "no permission to open the serial port, which often belongs to the group dialout";
  if (/lock|busy|EBUSY|access denied/i.test(message)) return "another program holds the serial port";
  return message;
}

// Timing of serial lines. Pure.

/** Characters of silence that end a frame. */
const silentCharacters = 3.5;

/** Milliseconds per character, with start, parity and stop bits. */
export function characterMs({ baudRate, dataBits, parity, stopBits }: SerialLine): number {
  return ((1 + dataBits + (parity === "none" ? 0 : 1) + stopBits) * 1_000) / baudRate;
}

/** Milliseconds between frames: 3.5 characters, at least 1.75 ms as specified for fast lines. */
export function gapMs(line: SerialLine): number {
  return Math.max(silentCharacters * characterMs(line), 1.75);
}

/** How to wait for a line to become quiet after a time-out. */
export interface LineRest {
  /** Required silence. */
  readonly quietMs: number;
  /** Minimum wait. */
  readonly guardMs: number;
}

/** The rest after a time-out of `timeoutMs`: silence of 3.5 characters or 20 ms, and time for a late answer. */
export function lineRest(line: SerialLine, timeoutMs: number): LineRest {
  return { quietMs: Math.max(silentCharacters * characterMs(line), 20), guardMs: Math.min(timeoutMs / 2, 500) };
}

/** Longest transmission time of `request` and its answer in milliseconds. */
export function wireMs(request: UnitRequest, { frames, line }: Extract<Endpoint, { transport: "serial" }>): number {
  const requestBytes = 8;
  const replyBytes = 3 + longestReply(request);
  const characters = frames === "ascii" ? 2 * (requestBytes + replyBytes) + 4 : requestBytes + replyBytes;
  return characters * characterMs(line);
}
