// A Modbus device that misbehaves in every way: answers that are late, for another request, too short, too long, in
// pieces, or wrong, or no answer. Seeded, so that every run is the same. Words of any wrong answer have bit 15 set.

/** The chunks to send in this order. `reset`: the connection is reset. */
export type Mischief = { readonly chunks: readonly Uint8Array[]; readonly reset: boolean };

export interface Adversary {
  /** The answer to a request of function 3 (unit, address, quantity, and the transaction ID of Modbus TCP). */
  answer(request: {
    readonly id: number;
    readonly unit: number;
    readonly start: number;
    readonly count: number;
  }): Mischief;
  /** Call it for a new connection: answers from before cannot arrive on it. */
  reconnected(): void;
  /** How often each misbehaviour occurred. */
  readonly done: ReadonlyMap<string, number>;
}

/** Encodes a frame of the protocol. Protocols without transaction IDs ignore `id`. */
export type EncodeFrame = (id: number, unit: number, pdu: Uint8Array) => Uint8Array;

/** The correct value of a register. */
export function honestWord(address: number): number {
  return address & 0x7f_ff;
}

export interface AdversaryOptions {
  /** The share of correct answers, 0 to 1; default 0.5. */
  readonly honesty?: number;
  /** Misbehaviours to omit: those that no receiver of the frame format can detect. */
  readonly without?: readonly string[];
}

export function adversary(encode: EncodeFrame, random: () => number, options: AdversaryOptions = {}): Adversary {
  const { honesty = 0.5, without = [] } = options;
  const below = (n: number) => Math.floor(random() * n);
  const done = new Map<string, number>();
  /** Delayed answers, sent before some later one. */
  let late: Uint8Array[] = [];

  const reply = (start: number, count: number, marked: boolean, code = 3) => {
    const pdu = new Uint8Array(2 + count * 2);
    pdu.set([code, count * 2]);
    for (let i = 0; i < count; i++) {
      const word = honestWord(start + i) | (marked ? 0x80_00 : 0);
      pdu.set([word >> 8, word & 0xff], 2 + i * 2);
    }
    return pdu;
  };

  const mischiefs: Readonly<Record<string, (r: Parameters<Adversary["answer"]>[0]) => Uint8Array[] | "reset">> = {
    late: (r) => {
      late.push(encode(r.id, r.unit, reply(r.start, r.count, true)));
      return [];
    },
    // An ID of an earlier request. With the ID of a later one, a delayed answer could not be told from the correct one.
    wrongId: (r) => [encode((r.id - 1 - below(32_768)) & 0xff_ff, r.unit, reply(r.start, r.count, true))],
    wrongUnit: (r) => [encode(r.id, (r.unit + 1 + below(254)) & 0xff, reply(r.start, r.count, true))],
    wrongFunction: (r) => [encode(r.id, r.unit, reply(r.start, r.count, true, [1, 2, 4, 0x84, 0][below(5)]))],
    wrongCount: (r) => [encode(r.id, r.unit, reply(r.start, 1 + ((r.count + below(124)) % 125), true))],
    short: (r) => {
      const frame = encode(r.id, r.unit, reply(r.start, r.count, true));
      return [frame.subarray(0, below(frame.length))];
    },
    lyingByteCount: (r) => {
      const pdu = reply(r.start, r.count, true);
      pdu[1] = (pdu[1]! + 1 + below(255)) & 0xff;
      return [encode(r.id, r.unit, pdu)];
    },
    lyingLength: (r) => {
      const frame = encode(r.id, r.unit, reply(r.start, r.count, true)).slice();
      frame[5] = (frame[5]! + 1 + below(255)) & 0xff;
      return [frame];
    },
    flipped: (r) => {
      const frame = encode(r.id, r.unit, reply(r.start, r.count, true)).slice();
      const at = below(Math.min(9, frame.length));
      frame[at] = frame[at]! ^ (1 << below(8));
      return [frame];
    },
    exception: (r) => [encode(r.id, r.unit, Uint8Array.of(0x83, 1 + below(11)))],
    garbage: () => [Uint8Array.from({ length: 1 + below(300) }, () => below(256))],
    otherProtocol: () => [new TextEncoder().encode("HTTP/1.1 400 Bad Request\r\n\r\n")],
    silent: () => [],
    reset: () => "reset",
  };
  const names = Object.keys(mischiefs).filter((name) => !without.includes(name));
  // Further bytes complete such a frame, with a wrong end. No receiver can detect this.
  const brokenFrames = new Set(["short", "lyingLength", "flipped", "garbage", "otherProtocol"]);

  /** Sends some answers in pieces and some together. */
  const inPieces = (chunks: readonly Uint8Array[]): readonly Uint8Array[] => {
    const all = Uint8Array.from(chunks.flatMap((chunk) => [...chunk]));
    const size = [all.length, 1, 1 + below(all.length + 1)][below(3)] ?? 1;
    const pieces = [];
    for (let i = 0; i < all.length; i += size) pieces.push(all.subarray(i, i + size));
    return pieces;
  };

  return {
    done,
    reconnected() {
      late = [];
    },
    answer(request) {
      // Before the request is processed, so that its own answer is not sent at once when it is delayed.
      const before = late.length > 0 && below(3) === 0 ? late.splice(below(late.length), 1) : [];
      const honest = random() < honesty;
      const name = honest ? "honest" : names[below(names.length)]!;
      done.set(name, (done.get(name) ?? 0) + 1);
      const own = honest
        ? [encode(request.id, request.unit, reply(request.start, request.count, false))]
        : mischiefs[name]!(request);
      if (own === "reset") return { chunks: [], reset: true };
      const twice = !brokenFrames.has(name) && below(10) === 0 ? own : [];
      return { chunks: inPieces([...before, ...own, ...twice]), reset: false };
    },
  };
}

/** A frame of Modbus TCP. */
export function mbapFrame(id: number, unit: number, pdu: Uint8Array): Uint8Array {
  const length = pdu.length + 1;
  return Uint8Array.from([id >> 8, id & 0xff, 0, 0, length >> 8, length & 0xff, unit, ...pdu]);
}
