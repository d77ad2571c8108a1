import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameCutter, maxMessage } from "../../../../src/source/mqtt/connection/web-socket-frames.ts";
import { runs } from "../../../support/property.ts";

interface Frame {
  readonly opcode: number;
  readonly isFinal: boolean;
  readonly payload: Buffer;
}

function encode({ opcode, isFinal, payload }: Frame): Buffer {
  const { length } = payload;
  const first = (isFinal ? 0x80 : 0) | opcode;
  const long = Buffer.alloc(8);
  long.writeBigUInt64BE(BigInt(length));
  const head =
    length < 126 ? [first, length] : length < 65_536 ? [first, 126, ...long.subarray(6)] : [first, 127, ...long];
  return Buffer.concat([Buffer.from(head), payload]);
}

/** Decodes whole frames. Throws if the stream ends within a frame. */
function decode(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; ) {
    const short = bytes.readUInt8(at + 1);
    const head = short === 127 ? 10 : short === 126 ? 4 : 2;
    const length =
      short === 127 ? Number(bytes.readBigUInt64BE(at + 2)) : short === 126 ? bytes.readUInt16BE(at + 2) : short;
    expect(bytes.length).toBeGreaterThanOrEqual(at + head + length);
    const first = bytes.readUInt8(at);
    const payload = bytes.subarray(at + head, at + head + length);
    frames.push({ opcode: first & 15, isFinal: first >= 128, payload });
    at += head + length;
  }
  return frames;
}

const size = fc.oneof(fc.nat(130), fc.integer({ min: 65_500, max: 65_600 }), fc.nat(200_000));
/** A message in one or several frames, with a ping in between. */
const message = fc
  .record({
    opcode: fc.constantFrom(2, 2, 2, 9),
    sizes: fc.array(size, { minLength: 1, maxLength: 4 }),
    ping: fc.boolean(),
  })
  .map(({ opcode, sizes, ping }): Frame[] => {
    if (opcode === 9) return [{ opcode, isFinal: true, payload: Buffer.from("ping") }];
    return sizes.flatMap((bytes, i): Frame[] => {
      const frame = { opcode: i === 0 ? 2 : 0, isFinal: i === sizes.length - 1, payload: Buffer.alloc(bytes, i + 1) };
      return ping && i > 0 ? [{ opcode: 9, isFinal: true, payload: Buffer.alloc(3) }, frame] : [frame];
    });
  });

test("whatever the frames and chunks, the bytes are the same, in whole messages of bounded size", () => {
  fc.assert(
    fc.property(
      fc.array(message, { minLength: 1, maxLength: 5 }),
      fc.array(fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1_000, max: 65_536 })), { minLength: 1 }),
      (messages, cuts) => {
        const sent = messages.flat();
        const bytes = Buffer.concat(sent.map(encode));
        const cutter = new FrameCutter();
        const passed: Buffer[] = [];
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const length = Math.max(cuts[i % cuts.length] ?? 1, Math.ceil(bytes.length / 2_000));
          passed.push(cutter.pass(bytes.subarray(at, at + length)));
          at += length;
        }
        const received = decode(Buffer.concat(passed));
        const data = (frames: readonly Frame[]) =>
          Buffer.concat(frames.filter(({ opcode }) => opcode !== 9).map(({ payload }) => payload));
        expect(data(received).equals(data(sent))).toBe(true);
        expect(received.filter(({ opcode }) => opcode === 9).length).toBe(
          sent.filter(({ opcode }) => opcode === 9).length,
        );
        expect(received.every(({ isFinal, payload }) => isFinal && payload.length <= maxMessage)).toBe(true);
      },
    ),
    runs(60),
  );
});

test("a message of 250 MB passes in pieces while it arrives", () => {
  const head = Buffer.from([0x82, 127, 0, 0, 0, 0, 0x0e, 0xe6, 0xb2, 0x80]);
  const cutter = new FrameCutter();
  expect(cutter.pass(head).length).toBe(0);
  const [piece] = decode(cutter.pass(Buffer.alloc(65_536)));
  expect(piece).toMatchObject({ opcode: 2, isFinal: true });
  expect(piece?.payload.length).toBe(65_536);
});

test("small whole messages pass as they are, without a copy", () => {
  const chunk = encode({ opcode: 2, isFinal: true, payload: Buffer.from("abc") });
  const cutter = new FrameCutter();
  expect(cutter.pass(chunk)).toEqual(chunk);
  expect(decode(cutter.pass(encode({ opcode: 1, isFinal: true, payload: Buffer.from("text") })))).toMatchObject([
    { opcode: 1 },
  ]);
});
