// How long bytes take on a serial line. Pure.
import type { Endpoint, SerialLine } from "../config/endpoint.ts";
import type { UnitRequest } from "../config/pdu.ts";
import { longestReply } from "../config/pdu.ts";
import type { LineRest } from "./exchange.ts";

/** Characters of silence that end a frame. */
const silentCharacters = 3.5;

/** Milliseconds that one character takes, with start, parity and stop bits. */
export function characterMs({ baudRate, dataBits, parity, stopBits }: SerialLine): number {
  return ((1 + dataBits + (parity === "none" ? 0 : 1) + stopBits) * 1_000) / baudRate;
}

/** Milliseconds between frames: 3.5 characters, fixed at 1.75 ms for fast lines by the specification. */
export function gapMs(line: SerialLine): number {
  return Math.max(silentCharacters * characterMs(line), 1.75);
}

/** How a line comes to rest after a time-out of `timeoutMs`: silence of 3.5 characters and 20 ms, and time for a late answer. */
export function lineRest(line: SerialLine, timeoutMs: number): LineRest {
  return { quietMs: Math.max(silentCharacters * characterMs(line), 20), guardMs: Math.min(timeoutMs / 2, 500) };
}

/** Milliseconds that `request` and its answer spend on the line at most. */
export function wireMs(request: UnitRequest, { frames, line }: Extract<Endpoint, { transport: "serial" }>): number {
  const requestBytes = 8;
  const replyBytes = 3 + longestReply(request);
  const characters = frames === "ascii" ? 2 * (requestBytes + replyBytes) + 4 : requestBytes + replyBytes;
  return characters * characterMs(line);
}
