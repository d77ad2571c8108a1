// Splits WebSocket messages on their way to the `ws` library, which buffers a message until it is complete. A broker
// may send a packet of 250 MB as one message, in one frame or in many:
//
//   from the socket   | binary, 250 MB: payload .................................................. |
//   to `ws`           | binary, 64 KB: payload | binary, 64 KB: payload | ... as the chunks come in |
//
// MQTT permits any split: "the receiver MUST NOT assume that MQTT Control Packets are aligned on WebSocket frame
// boundaries" [MQTT-6.0.0-2]. Text frames, control frames and small whole messages pass unchanged.
import type { ClientRequest } from "node:http";
import type { Duplex } from "node:stream";

/** Largest message that passes unchanged, in bytes. */
const smallMessage = 65_536;
/** Largest message for `ws`, in bytes: a small one, or a piece as large as a chunk from the socket. */
export const maxMessage = 2 ** 20;

const continuation = 0;
const binary = 2;
const final = 0x80;

/** Options of `ws` that avoid buffering whole messages. Compressed messages cannot be split, so none are offered. */
export const cutMessages = {
  perMessageDeflate: false,
  maxPayload: maxMessage,
  finishRequest(request: ClientRequest): void {
    // Must run before the listener of `ws`, which then reads the socket.
    request.prependOnceListener("upgrade", (_response, socket) => cutDataOf(socket));
    request.end();
  },
} as const;

function cutDataOf(socket: Duplex): void {
  const cutter = new FrameCutter();
  const emit = socket.emit.bind(socket);
  socket.emit = (event: string | symbol, ...rest: unknown[]): boolean => {
    const [chunk] = rest;
    if (event !== "data" || !Buffer.isBuffer(chunk)) return emit(event, ...rest);
    const cut = cutter.pass(chunk);
    return cut.length === 0 || emit("data", cut);
  };
}

/** Splits the frames of a server, which are not masked. */
export class FrameCutter {
  /** An incomplete frame header, at most 13 bytes. */
  #pending: Buffer = nothing;
  /** Remaining bytes of the current payload. */
  #left = 0;
  /** Whether the payload is split, so that each part gets its own header. */
  #cut = false;
  /** Whether a split message with several frames is in progress. */
  #inMessage = false;

  /** Returns the frames for `ws` from `chunk`. */
  pass(chunk: Buffer): Buffer {
    const input = this.#pending.length > 0 ? Buffer.concat([this.#pending, chunk]) : chunk;
    this.#pending = nothing;
    const parts: Buffer[] = [];
    let at = 0;
    while (at < input.length) {
      if (this.#left > 0) {
        const payload = input.subarray(at, at + this.#left);
        this.#left -= payload.length;
        at += payload.length;
        if (this.#cut) parts.push(headerOf(payload.length));
        parts.push(payload);
        continue;
      }
      const header = readHeader(input, at);
      if (header === undefined) {
        this.#pending = Buffer.from(input.subarray(at));
        break;
      }
      const { opcode, isFinal, length, bytes } = header;
      const whole = opcode === binary && isFinal && length <= smallMessage;
      this.#cut = !whole && (opcode === binary || (opcode === continuation && this.#inMessage));
      if (opcode === binary || opcode === continuation) this.#inMessage = this.#cut && !isFinal;
      if (!this.#cut) parts.push(input.subarray(at, at + bytes));
      this.#left = length;
      at += bytes;
    }
    return parts.length === 1 ? (parts[0] ?? nothing) : Buffer.concat(parts);
  }
}

const nothing = Buffer.alloc(0);

interface FrameHeader {
  readonly opcode: number;
  readonly isFinal: boolean;
  /** Bytes of the payload. */
  readonly length: number;
  /** Bytes of the header. */
  readonly bytes: number;
}

/** The header at `at`. Undefined: incomplete. */
function readHeader(input: Buffer, at: number): FrameHeader | undefined {
  const [first, second] = [input[at], input[at + 1]];
  if (first === undefined || second === undefined) return undefined;
  // Servers must not mask. `ws` rejects a masked frame by its header.
  const short = second & 0x7f;
  const bytes = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (input.length < at + bytes) return undefined;
  const length =
    short === 127 ? Number(input.readBigUInt64BE(at + 2)) : short === 126 ? input.readUInt16BE(at + 2) : short;
  return { opcode: first & 0x0f, isFinal: (first & final) !== 0, length, bytes };
}

/** Header of a complete, unmasked binary message. */
function headerOf(length: number): Buffer {
  if (length < 126) return Buffer.from([final | binary, length]);
  const header = Buffer.alloc(length < 65_536 ? 4 : 10);
  header[0] = final | binary;
  header[1] = length < 65_536 ? 126 : 127;
  if (length < 65_536) header.writeUInt16BE(length, 2);
  else header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}
