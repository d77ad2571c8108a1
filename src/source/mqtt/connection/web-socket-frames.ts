// Cuts WebSocket messages into pieces on their way to the `ws` library, which holds a message in memory until it is
// complete. A broker may send a packet of 250 MB as one message, in one frame or in many:
//
//   from the socket   | binary, 250 MB: payload .................................................. |
//   to `ws`           | binary, 64 KB: payload | binary, 64 KB: payload | ... as the chunks come in |
//
// MQTT allows any cutting: "the receiver MUST NOT assume that MQTT Control Packets are aligned on WebSocket frame
// boundaries" [MQTT-6.0.0-2]. Frames of text, control frames and small whole messages pass as they are.
import type { ClientRequest } from "node:http";
import type { Duplex } from "node:stream";

/** Bytes of a message that passes as it is. */
const smallMessage = 65_536;
/** Bytes of a message that `ws` may see: a small one, or a piece of the size of a chunk from the socket. */
export const maxMessage = 2 ** 20;

const continuation = 0;
const binary = 2;
const final = 0x80;

/** Options of `ws` under which no message is ever held as a whole. Compressed messages could not be cut: none are offered. */
export const cutMessages = {
  perMessageDeflate: false,
  maxPayload: maxMessage,
  finishRequest(request: ClientRequest): void {
    // Before the listener of `ws`, which reads the socket from then on.
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

/** Reads frames as a server sends them: without a mask. */
export class FrameCutter {
  /** Bytes of a header that is not complete, 13 at most. */
  #pending: Buffer = nothing;
  /** Bytes of the payload that is being passed. */
  #left = 0;
  /** Whether that payload is cut: each part of it gets a header of its own. */
  #cut = false;
  /** Whether a message of several frames is under way that is cut. */
  #inMessage = false;

  /** The frames that `ws` is to see of `chunk`. */
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
  /** Of the payload. */
  readonly length: number;
  /** Of the header itself. */
  readonly bytes: number;
}

/** The header at `at`; undefined: it is not complete. */
function readHeader(input: Buffer, at: number): FrameHeader | undefined {
  const [first, second] = [input[at], input[at + 1]];
  if (first === undefined || second === undefined) return undefined;
  // A server must not mask; `ws` refuses a frame with a mask by its header alone.
  const short = second & 0x7f;
  const bytes = short === 127 ? 10 : short === 126 ? 4 : 2;
  if (input.length < at + bytes) return undefined;
  const length =
    short === 127 ? Number(input.readBigUInt64BE(at + 2)) : short === 126 ? input.readUInt16BE(at + 2) : short;
  return { opcode: first & 0x0f, isFinal: (first & final) !== 0, length, bytes };
}

/** Of a whole binary message without a mask. */
function headerOf(length: number): Buffer {
  if (length < 126) return Buffer.from([final | binary, length]);
  const header = Buffer.alloc(length < 65_536 ? 4 : 10);
  header[0] = final | binary;
  header[1] = length < 65_536 ? 126 : 127;
  if (length < 65_536) header.writeUInt16BE(length, 2);
  else header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}
