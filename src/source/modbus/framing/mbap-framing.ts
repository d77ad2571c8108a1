// Modbus TCP frames, also used over UDP. Pure.
//
//   0    2    4    6    7
//   +----+----+----+----+-----------+
//   | id |  0 | n  |unit| PDU       |   n = 1 + length of PDU, 2 to 254
//   +----+----+----+----+-----------+
//
// An answer must match the id, unit, function and length of the request. The id of an abandoned request is not reused
// until its answer has come, or thousands of others were abandoned. There is no checksum: a truncated frame that later
// bytes complete exactly is not detected.
import { AgentError } from "../../../core/errors.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { maxPduBytes, mismatchOf, type UnitRequest } from "../config/pdu.ts";
import { concatBytes, type Framing, foreignBytes } from "./framing.ts";

const headerBytes = 7;
const maxAbandoned = 4_096;
const nothing = new Uint8Array(0);

interface MbapOptions {
  /** Whether an answer may carry another unit than the request. */
  readonly anyUnit: boolean;
  /** Id of the first request, from 0 to 65535. */
  readonly firstId?: number;
  /** Every chunk is a datagram: a whole frame or invalid. */
  readonly datagrams?: boolean;
  /** `host:port` of the device, for messages. */
  readonly peer?: string;
}

export class MbapFraming implements Framing {
  readonly #options: MbapOptions;
  #nextId: number;
  #current: { readonly id: number; readonly request: UnitRequest } | undefined;
  readonly #abandoned = new Set<number>();
  #received: Uint8Array = nothing;
  readonly holding = false;
  discarded = 0;
  late = { unit: 0, count: 0 };
  mismatch: string | undefined;

  constructor(options: MbapOptions) {
    this.#options = options;
    this.#nextId = options.firstId ?? 0;
  }

  /** Needs no such request, as frames have ids. */
  resync(): undefined {}

  begin(request: UnitRequest, pdu: Uint8Array): Uint8Array {
    while (this.#abandoned.has(this.#nextId)) this.#nextId = (this.#nextId + 1) & 0xff_ff;
    const id = this.#nextId;
    this.#nextId = (id + 1) & 0xff_ff;
    this.#current = { id, request };
    this.mismatch = undefined;
    // From the pool, as memory of its own would cost more than the frame.
    const frame = Buffer.allocUnsafe(headerBytes + pdu.length);
    frame.writeUInt32BE(id * 0x1_0000, 0);
    frame.writeUInt16BE(1 + pdu.length, 4);
    frame[6] = request.unit;
    frame.set(pdu, headerBytes);
    return frame;
  }

  receive(chunk: Uint8Array): Uint8Array | undefined {
    if (!this.#options.datagrams) return this.#receiveStream(chunk);
    const isFrame = attempt(() => frameBytes(chunk)) === chunk.length;
    return isFrame ? this.#take(chunk) : this.#discard("a datagram that is no frame");
  }

  #receiveStream(chunk: Uint8Array): Uint8Array | undefined {
    let bytes = this.#received.length === 0 ? chunk : concatBytes(this.#received, chunk);
    let answer: Uint8Array | undefined;
    for (;;) {
      const size = this.#frameBytes(bytes);
      if (size === undefined || bytes.length < size) break;
      answer = this.#take(bytes.subarray(0, size)) ?? answer;
      bytes = bytes.subarray(size);
    }
    // Copy the rest, at most one frame, as the chunk belongs to the socket.
    this.#received = bytes.length === 0 ? nothing : new Uint8Array(bytes);
    // A truncated frame takes its last bytes from the next one, whose remainder is left over.
    return answer && bytes.length > 0 ? this.#discard("bytes behind its end") : answer;
  }

  /** Like `frameBytes`, but the error names the foreign protocol. */
  #frameBytes(bytes: Uint8Array): number | undefined {
    try {
      return frameBytes(bytes);
    } catch (error) {
      const request = this.#current?.request;
      const { peer = "HOST:PORT" } = this.#options;
      const foreign = request && foreignBytes(bytes, { request, expected: "mbap", peer });
      if (!foreign) throw error;
      throw new AgentError("SOURCE_PROTOCOL", `${peer} sent ${foreign.what} instead of Modbus TCP`, {
        cause: error,
        hint: foreign.hint,
      });
    }
  }

  expire(): undefined {}

  abandon(): boolean {
    if (this.#current) this.#abandoned.add(this.#current.id);
    this.#current = undefined;
    const [oldest] = this.#abandoned;
    if (this.#abandoned.size > maxAbandoned && oldest !== undefined) this.#abandoned.delete(oldest);
    // A partial frame will not be completed; the next one would be read as its rest.
    return this.#received.length === 0;
  }

  #take(frame: Uint8Array): Uint8Array | undefined {
    const id = (frame[0]! << 8) | frame[1]!;
    const unit = frame[6]!;
    const current = this.#current;
    if (!current || id !== current.id) {
      if (this.#abandoned.delete(id)) this.late = { unit, count: this.late.count + 1 };
      return this.#discard(`transaction ${id} instead of ${current?.id ?? "none"}`);
    }
    const { request } = current;
    if (unit !== request.unit && !this.#options.anyUnit)
      return this.#discard(`unit ${unit} instead of ${request.unit} (replyUnit: any accepts that)`);
    const pdu = frame.subarray(headerBytes);
    const mismatch = mismatchOf(pdu, request);
    if (mismatch !== undefined) return this.#discard(mismatch);
    this.#current = undefined;
    return pdu;
  }

  #discard(mismatch: string): undefined {
    this.discarded++;
    this.mismatch = mismatch;
  }
}

/** Length of the first frame in `bytes`. Undefined if too few bytes. */
function frameBytes(bytes: Uint8Array): number | undefined {
  // Report this early: a peer with another protocol may never send a whole header.
  if ((bytes[2] ?? 0) !== 0 || (bytes[3] ?? 0) !== 0)
    throw new AgentError("SOURCE_PROTOCOL", "what came back is not Modbus TCP: its protocol identifier is not 0");
  if (bytes.length < 6) return undefined;
  const length = (bytes[4]! << 8) | bytes[5]!;
  if (length < 3 || length > 1 + maxPduBytes)
    throw new AgentError("SOURCE_PROTOCOL", `a Modbus TCP frame claims a length of ${length}; 3 to 254 are possible`);
  return 6 + length;
}
