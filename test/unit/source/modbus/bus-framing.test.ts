import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Answer, ReadRequest } from "../../../../src/source/modbus/config/pdu.ts";
import { asciiCodec, type BusCodec, crc16, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { lateReplyTracker } from "../../../../src/source/modbus/framing/distinct-replies.ts";
import { adversary, honestWord } from "../../../support/modbus-adversary.ts";
import { typedFraming } from "../../../support/modbus-typed-framing.ts";
import { runs, seed } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

const read = (start: number, count: number, unit = 1): ReadRequest => ({ unit, table: "hr", start, count });
const bytes = (...values: number[]) => Uint8Array.from(values);
const joined = (...parts: readonly Uint8Array[]) => Uint8Array.from(parts.flatMap((part) => [...part]));
const one = (word: number) => bytes(3, 2, word >> 8, word & 0xff);
/** The answer of a unit whose only holding registers are 0 to 29. */
const honest = ({ table, start, count }: ReadRequest) => {
  if (table !== "hr") return bytes(0x84, 1);
  if (start + count > 30) return bytes(0x83, 2);
  return bytes(3, 2 * count, ...Array.from({ length: count }, (_, i) => [0, start + i]).flat());
};
const data = (word: number) => ({ kind: "data", bytes: bytes(word >> 8, word & 0xff) });

test("the checksum is that of the specification", () => {
  expect(crc16(bytes(0x02, 0x07))).toBe(0x12_41);
  expect(Buffer.from(rtuCodec.encode({ unit: 1, pdu: bytes(3, 0, 0, 0, 10) })).toString("hex")).toBe(
    "01030000000ac5cd",
  );
  expect(Buffer.from(asciiCodec.encode({ unit: 0xf7, pdu: bytes(3, 0x13, 0x89, 0, 0x0a) })).toString()).toBe(
    ":F7031389000A60\r\n",
  );
});

test("a bounded number of late answers is expected of a unit that never answers", () => {
  const lateReplies = lateReplyTracker();
  for (let i = 0; i < 1_000; i++) lateReplies.add(read(i, 1));
  expect(lateReplies.count(1)).toBeLessThanOrEqual(32);
});

test("no distinguishing request reaches beyond the last address", () => {
  const lateReplies = lateReplyTracker();
  const last = read(65_535, 1);
  lateReplies.add(last);
  lateReplies.add({ ...last, table: "ir" });
  expect(lateReplies.resync(last)).toBeUndefined();
});

describe.each([
  ["rtu", rtuCodec],
  ["ascii", asciiCodec],
] as const)("%s", (_name, codec: BusCodec) => {
  const frame = (word: number, unit = 1) => codec.encode({ unit, pdu: one(word) });
  const onLine = () => typedFraming(new BusFraming({ codec, reopen: false }));

  test("an answer is found byte by byte, after noise, after an echo and after the answer of another unit", () => {
    for (const before of [
      bytes(),
      bytes(0, 0x55, 3, 0xff),
      codec.encode({ unit: 1, pdu: bytes(3, 0, 0, 0, 1) }),
      frame(9, 2),
    ]) {
      const framing = onLine();
      framing.begin(read(0, 1));
      const answers = [...joined(before, frame(0x1234))].map((byte) => framing.receive(bytes(byte)));
      expect(answers.slice(0, -1).every((answer) => answer === undefined)).toBe(true);
      expect(answers.at(-1)).toEqual(data(0x1234));
    }
  });

  test("the echo of a request that looks like its answer is not accepted", () => {
    const framing = onLine();
    const sent = framing.begin({ unit: 1, table: "co", start: 0x300, count: 24 });
    expect(framing.receive(sent)).toBeUndefined();
    expect(framing.mismatch).toBe("the echo of the request");
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(1, 3, 1, 2, 3) }))).toEqual({
      kind: "data",
      bytes: bytes(1, 2, 3),
    });
  });

  test("a wrong checksum, unit, function or length is not accepted as an answer", () => {
    const framing = onLine();
    framing.begin(read(0, 1));
    const broken = frame(1).slice();
    broken[4] = broken[4]! ^ 1;
    for (const wrong of [
      broken,
      frame(1, 2),
      codec.encode({ unit: 1, pdu: bytes(4, 2, 0, 1) }),
      codec.encode({ unit: 1, pdu: bytes(3, 4, 0, 1, 0, 2) }),
    ])
      expect(framing.receive(wrong)).toBeUndefined();
    expect(framing.receive(frame(7))).toEqual(data(7));
  });

  test("an exception is accepted as an answer", () => {
    const framing = onLine();
    framing.begin(read(0, 1));
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(0x83, 2) }))).toEqual({ kind: "exception", code: 2 });
  });

  test("bytes received before a request are not its answer", () => {
    const framing = onLine();
    framing.receive(frame(1));
    framing.begin(read(0, 1));
    expect(framing.expire()).toBeUndefined();

    // The same if a part of it arrives after the request.
    const torn = onLine();
    torn.receive(frame(1).subarray(0, 4));
    torn.begin(read(0, 1));
    expect(torn.receive(frame(1).subarray(4))).toBeUndefined();
    expect(torn.expire()).toBeUndefined();
  });

  test("after a timeout the late answer of a unit is not accepted for the next request, whose answer follows", () => {
    const framing = onLine();
    framing.begin(read(10, 1));
    expect(framing.abandon()).toBe(true);
    framing.begin(read(20, 1));
    expect(framing.receive(frame(10))).toBeUndefined();
    expect(framing.receive(frame(20))).toBeUndefined();
    expect(framing.expire()).toEqual(data(20));
    framing.begin(read(30, 1));
    expect(framing.receive(frame(30))).toEqual(data(30));
  });

  test("a late answer received during a request to another unit is accounted for", () => {
    const framing = onLine();
    framing.begin(read(10, 1));
    framing.abandon();
    framing.begin(read(0, 1, 2));
    expect(framing.receive(frame(10))).toBeUndefined();
    expect(framing.receive(frame(2, 2))).toEqual(data(2));
    framing.begin(read(20, 1));
    expect(framing.receive(frame(20))).toEqual(data(20));
  });

  test("of two timed-out requests one late answer accounts for one: the next answer is still held", () => {
    const framing = onLine();
    for (const start of [10, 20]) {
      framing.begin(read(start, 1));
      framing.abandon();
    }
    framing.begin(read(0, 1, 2));
    framing.receive(frame(10));
    expect(framing.receive(frame(2, 2))).toEqual(data(2));
    framing.begin(read(30, 1));
    expect(framing.receive(frame(20))).toBeUndefined();
    expect(framing.holding).toBe(true);
    expect(framing.receive(frame(30))).toBeUndefined();
    expect(framing.holding).toBe(false);
    expect(framing.expire()).toEqual(data(30));
  });

  test("after a timeout a distinguishing request separates a late answer from the next one, which is then accepted at once", () => {
    const framing = onLine();
    const two = (word: number) => codec.encode({ unit: 1, pdu: bytes(3, 4, 0, word, 0, word + 1) });
    framing.begin(read(10, 2));
    framing.abandon();
    const resync = framing.resync(read(20, 2));
    expect(resync).toEqual(read(20, 1));
    framing.begin(resync ?? read(20, 1));
    expect(framing.receive(two(10))).toBeUndefined();
    expect(framing.holding).toBe(true);
    expect(framing.receive(frame(20))).toEqual(data(20));
    expect(framing.resync(read(20, 2))).toBeUndefined();
    framing.begin(read(20, 2));
    expect(framing.receive(two(20))).toEqual({ kind: "data", bytes: bytes(0, 20, 0, 21) });
  });

  test("an answer that cannot be late shows that no late ones will follow", () => {
    const framing = onLine();
    for (let i = 0; i < 3; i++) {
      framing.begin(read(10, 2));
      framing.abandon();
    }
    framing.begin(read(20, 1));
    expect(framing.receive(frame(20))).toEqual(data(20));
    expect(framing.resync(read(10, 2))).toBeUndefined();
  });

  test("a unit without a distinguishing answer is not held up for ever: its last answer is accepted", () => {
    const lateReplies = lateReplyTracker();
    const framing = typedFraming(new BusFraming({ codec, reopen: false, lateReplies, mayRead: () => false }));
    for (let i = 0; i < 3; i++) {
      framing.begin(read(10, 1));
      framing.abandon();
    }
    framing.begin(read(20, 1));
    expect(framing.receive(frame(20))).toBeUndefined();
    expect(framing.expire()).toEqual(data(20));
    expect(lateReplies.count(1)).toBe(0);
    framing.begin(read(20, 1));
    expect(framing.receive(frame(20))).toEqual(data(20));
  });

  test("a single value is distinguished by a request to the other table, or by its exception", () => {
    const framing = onLine();
    framing.begin(read(10, 1));
    framing.abandon();
    const resync: ReadRequest = { unit: 1, table: "ir", start: 20, count: 1 };
    expect(framing.resync(read(20, 1))).toEqual(resync);
    framing.begin(resync);
    expect(framing.receive(frame(10))).toBeUndefined();
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(0x84, 1) }))).toEqual({ kind: "exception", code: 1 });
    expect(framing.resync(read(20, 1))).toBeUndefined();
  });

  test("an exception that may be late accounts for the first request, and not for the last", () => {
    const framing = onLine();
    framing.begin(read(10, 2));
    framing.abandon();
    framing.begin(read(20, 1));
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(0x83, 2) }))).toBeUndefined();
    expect(framing.expire()).toEqual({ kind: "exception", code: 2 });
    // The exception answered the first request or the second. The second answer may still arrive.
    expect(framing.resync(read(30, 2))).toBeUndefined();
    expect(framing.resync(read(30, 1))).toMatchObject({ table: "ir" });
    framing.begin(read(30, 3));
    expect(framing.receive(frame(20))).toBeUndefined();
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(3, 6, 0, 1, 0, 2, 0, 3) }))).toMatchObject({
      bytes: bytes(0, 1, 0, 2, 0, 3),
    });
  });

  test("a unit also silent about its other table is asked for another length, and finally without a distinguishing request", () => {
    const framing = onLine();
    const ir = (start: number, count: number): ReadRequest => ({ unit: 1, table: "ir", start, count });
    for (const request of [read(10, 1), ir(20, 1), ir(20, 2)]) {
      expect(framing.resync(read(20, 1))).toEqual(request.table === "ir" ? request : undefined);
      framing.begin(request);
      framing.abandon();
    }
    expect(framing.resync(read(20, 1))).toBeUndefined();
    // An exception for one of the two shows that no answer to an earlier request will follow.
    framing.begin(read(20, 1));
    expect(framing.receive(codec.encode({ unit: 1, pdu: bytes(0x84, 1) }))).toBeUndefined();
    expect(framing.receive(frame(20))).toEqual(data(20));
  });

  test("however late the answers of a unit are, none is accepted for another request", () => {
    const step = fc.record({
      start: fc.nat(30),
      count: fc.integer({ min: 1, max: 8 }),
      lost: fc.nat(9).map((n) => n === 0),
      before: fc.nat(3),
      now: fc.nat(4),
    });
    let taken = 0;
    const check = fc.property(fc.array(step, { minLength: 5, maxLength: 60 }), (steps) => {
      const lateReplies = lateReplyTracker();
      const framing = typedFraming(new BusFraming({ codec, reopen: false, lateReplies }));
      /** Answers that the unit has not sent yet. */
      const toCome: Uint8Array[] = [];
      const hear = (frames: number): Answer | undefined =>
        toCome
          .splice(0, frames)
          .reduce<Answer | undefined>((answer, next) => framing.receive(next) ?? answer, undefined);
      for (const { start, count, lost, before, now } of steps) {
        const ask = (request: ReadRequest) => {
          framing.begin(request);
          if (!lost) toCome.push(codec.encode({ unit: 1, pdu: honest(request) }));
          const answer = hear(now) ?? framing.expire();
          if (!answer) framing.abandon();
          return answer;
        };
        hear(before);
        const request = read(start, count);
        const resync = framing.resync(request);
        if (resync && !("identity" in resync) && !ask(resync)) continue;
        // No distinguishing request was left. Other tests cover this case.
        if (lateReplies.isAmbiguous(request)) return;
        const answer = ask(request);
        if (answer?.kind !== "data") continue;
        taken++;
        expect(answer.bytes).toEqual(honest(request).subarray(2));
      }
    });
    fc.assert(check, runs(200));
    expect(taken).toBeGreaterThan(400);
  });

  test("a timeout reopens the connection where that is possible", () => {
    const framing = typedFraming(new BusFraming({ codec, reopen: true }));
    framing.begin(read(0, 1));
    expect(framing.abandon()).toBe(false);
  });

  test("any frame is found complete among any other bytes, and scanning never throws", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.uint8Array({ maxLength: 40 }),
        fc.nat(0xff_ff),
        (before, after, word) => {
          const { frames, rest } = codec.scan(joined(before, frame(word), after));
          expect(rest).toBeLessThanOrEqual(before.length + frame(word).length + after.length);
          // Noise may contain the start of a longer frame, but no more.
          if (!before.includes(0x3a) && codec === asciiCodec)
            expect(frames).toContainEqual({ unit: 1, pdu: one(word) });
          // Noise and the start of the frame may have a right checksum by chance.
          const isByChance = codec.scan(joined(before, frame(word).subarray(0, -1))).frames.length > 0;
          if (codec === rtuCodec && !isByChance) expect(frames).toContainEqual({ unit: 1, pdu: one(word) });
        },
      ),
      runs(1_000, { examples: [[Uint8Array.from([222, 1]), Uint8Array.from([]), 48_350]] }),
    );
  });

  test(`no faulty behaviour of a device gives a wrong value, seed ${seed}`, () => {
    const random = seeded(seed);
    // In hexadecimal, a flipped bit may turn a letter into its other case, which has the same value.
    const without = codec === asciiCodec ? ["wrongId", "flipped", "lyingLength"] : ["wrongId"];
    const device = adversary((_id, unit, pdu) => codec.encode({ unit, pdu }), random, { without });
    let framing = typedFraming(new BusFraming({ codec, reopen: true }));
    let right = 0;
    for (let i = 0; i < Number(process.env.TAGFERRY_ADVERSARY ?? 6_000); i++) {
      const request = read(Math.floor(random() * 1_000), 1 + Math.floor(random() * 8), 1 + Math.floor(random() * 3));
      framing.begin(request);
      const { chunks } = device.answer({ ...request, id: 0 });
      let answered = false;
      for (const chunk of chunks) {
        const answer = framing.receive(chunk);
        if (!answer) continue;
        answered = true;
        if (answer.kind === "exception") continue;
        expect(answer.bytes).toEqual(
          Uint8Array.from(
            Array.from({ length: request.count }, (_, w) => honestWord(request.start + w)).flatMap((w) => [
              w >> 8,
              w & 0xff,
            ]),
          ),
        );
        right++;
      }
      if (answered) continue;
      framing = typedFraming(new BusFraming({ codec, reopen: true }));
      device.reconnected();
    }
    expect(right).toBe(device.done.get("honest"));
  });
});
