import fc from "fast-check";
import { generate, type IPublishPacket, type Packet, parser } from "mqtt-packet";
import { expect, test } from "vitest";
import { OversizeFilter } from "../../../../src/source/mqtt/connection/oversize-filter.ts";
import { runs } from "../../../support/property.ts";

type Version = 4 | 5;
const maxPayload = 300;
/** What of a PUBLISH the parser may have to hold: a topic, an identifier and properties beside the payload. */
const heads = 200;

/** Packets as `mqtt-packet` reads them from what the filter passes; those that stand for a skipped one have its size. */
function filtered(chunks: Iterable<Buffer>, version: Version) {
  const filter = new OversizeFilter({ maxPayload, protocolVersion: version });
  const incoming = parser({ protocolVersion: version });
  const packets: { packet: Packet; skippedBytes?: number | undefined }[] = [];
  let held = 0;
  incoming.on("packet", (packet) =>
    packets.push(packet.cmd === "publish" ? { packet, skippedBytes: filter.nextPublish() } : { packet }),
  );
  incoming.on("error", (error) => {
    throw error;
  });
  for (const chunk of chunks) held = Math.max(held, incoming.parse(filter.pass(chunk)));
  return { packets, held };
}

/** The oracle: what the parser reads without a filter, with the payloads taken out that are too large. */
function expected(bytes: Buffer, version: Version) {
  const incoming = parser({ protocolVersion: version });
  const packets: { packet: Packet; skippedBytes?: number | undefined }[] = [];
  incoming.on("packet", (packet) => {
    if (packet.cmd !== "publish" || packet.payload.length <= maxPayload)
      packets.push(packet.cmd === "publish" ? { packet, skippedBytes: undefined } : { packet });
    else {
      const { properties: _, length, ...kept } = packet;
      const omitted = packet.payload.length + (version === 5 ? propertyBytes(packet) : 0);
      packets.push({
        packet: { ...kept, length: (length ?? 0) - omitted, payload: Buffer.alloc(0) },
        skippedBytes: packet.payload.length,
      });
    }
  });
  incoming.parse(bytes);
  return packets;
}

/** Bytes of the properties beyond the one byte that says there are none. */
function propertyBytes(packet: IPublishPacket): number {
  const { properties: _, ...without } = packet;
  // Without the fixed header, whose length has a second byte from 128 bytes on.
  const size = (which: IPublishPacket) => {
    const { length } = generate(which, { protocolVersion: 5 });
    return length - (length > 129 ? 3 : 2);
  };
  return size({ ...packet, payload: "" }) - size({ ...without, payload: "" });
}

const publish = (version: Version) =>
  fc
    .record({
      topic: fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom("a", "/", "ü", "7") }),
      size: fc.oneof(fc.nat(20), fc.integer({ min: maxPayload - 60, max: maxPayload + 60 }), fc.nat(6_000)),
      qos: fc.constantFrom<0 | 1 | 2>(0, 1, 2),
      messageId: fc.integer({ min: 1, max: 65_535 }),
      retain: fc.boolean(),
      dup: fc.boolean(),
      user: fc.string({ maxLength: 90, unit: fc.constantFrom("a", "b") }),
    })
    .map(
      ({ topic, size, qos, messageId, retain, dup, user }): Packet => ({
        cmd: "publish",
        topic,
        payload: Buffer.alloc(size, "x"),
        qos,
        retain,
        dup: qos > 0 && dup,
        ...(qos > 0 && { messageId }),
        ...(version === 5 && user !== "" && { properties: { userProperties: { user } } }),
      }),
    );
const other = fc.constantFrom<Packet>(
  { cmd: "pingresp" },
  { cmd: "pubrel", messageId: 7 },
  { cmd: "suback", messageId: 9, granted: [1, 0] },
);
const stream = fc.constantFrom<Version>(4, 5).chain((version) =>
  fc.record({
    version: fc.constant(version),
    packets: fc.array(fc.oneof({ weight: 3, arbitrary: publish(version) }, other), { minLength: 1, maxLength: 12 }),
    cuts: fc.array(fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 2_000 })), { minLength: 1 }),
  }),
);

function* cutUp(bytes: Buffer, cuts: readonly number[]): Generator<Buffer> {
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = cuts[i % cuts.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

test("whatever the chunks, the parser reads every packet, with an empty payload in place of one that is too large", () => {
  fc.assert(
    fc.property(stream, ({ version, packets, cuts }) => {
      const bytes = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: version })));
      const result = filtered(cutUp(bytes, cuts), version);
      expect(result.packets.map(plain)).toEqual(expected(bytes, version).map(plain));
      expect(result.held).toBeLessThanOrEqual(maxPayload + heads);
    }),
    runs(150),
  );
});

/** Comparable whatever class the parser makes them of. */
const plain = ({ packet, skippedBytes }: { packet: Packet; skippedBytes?: number | undefined }) => ({
  ...packet,
  ...(packet.cmd === "publish" && { payload: packet.payload.toString("latin1") }),
  skippedBytes,
});

test("a stream cut in two at any byte is read as a whole one", () => {
  const packets: readonly Packet[] = [
    { cmd: "publish", topic: "line/a", payload: "21", qos: 1, messageId: 1, dup: false, retain: false },
    { cmd: "publish", topic: "line/big", payload: "x".repeat(500), qos: 2, messageId: 2, dup: true, retain: true },
    { cmd: "pingresp" },
    { cmd: "publish", topic: "line/fits", payload: "y".repeat(300), qos: 0, dup: false, retain: false },
    { cmd: "publish", topic: "line/big", payload: "z".repeat(301), qos: 0, dup: false, retain: false },
  ];
  for (const version of [4, 5] as const) {
    const bytes = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: version })));
    const whole = filtered([bytes], version).packets.map(plain);
    expect(whole.map(({ skippedBytes }) => skippedBytes)).toEqual([undefined, 500, undefined, undefined, 301]);
    for (let at = 1; at < bytes.length; at++)
      expect(filtered([bytes.subarray(0, at), bytes.subarray(at)], version).packets.map(plain)).toEqual(whole);
  }
});

test("chunks that contain nothing to skip are passed on as they are, without a copy", () => {
  const filter = new OversizeFilter({ maxPayload, protocolVersion: 4 });
  const packet = { cmd: "publish", topic: "a", payload: "1", qos: 0, dup: false, retain: false } as const;
  const chunk = Buffer.concat(Array.from({ length: 50 }, () => generate(packet)));
  expect(filter.pass(chunk)).toBe(chunk);
});

test("250 MB of payload pass in chunks, and nothing of it is kept", () => {
  const filter = new OversizeFilter({ maxPayload, protocolVersion: 4 });
  const length = 250_000_000;
  const head = Buffer.from([0x32, 0x80 | (length & 127), 0x80 | ((length >> 7) & 127), 0x80 | ((length >> 14) & 127)]);
  const begin = Buffer.concat([head, Buffer.from([length >> 21, 0, 1, 0x61, 0, 5])]);
  expect(filter.pass(begin).length).toBe(0);
  const chunk = Buffer.alloc(65_536);
  let passed = 0;
  for (let rest = length - 5; rest > 0; rest -= chunk.length) {
    const part = filter.pass(chunk.subarray(0, Math.min(rest, chunk.length)));
    passed += part.length;
  }
  expect(passed).toBe(7);
  expect(filter.nextPublish()).toBe(length - 5);
});

test.each([
  ["a length of five bytes", [0x30, 0x80, 0x80, 0x80, 0x80, 0x01], /more than four bytes/],
  ["a length of five bytes that is not complete", [0x30, 0xff, 0xff, 0xff, 0xff], /more than four bytes/],
  ["a SUBACK of 200 MB", [0x90, 0x80, 0x80, 0x80, 0x64], /type 9 with 209715200 bytes/],
  ["a topic that is longer than its message", [0x30, 0xb0, 0x02, 0xff, 0xff, 0x61], /longer than the message/],
  ["properties longer than their message", [0x30, 0xb0, 0x02, 0, 1, 0x61, 0xff, 0xff, 0x7f], /longer than the message/],
])("%s ends the connection, whatever the chunks", (_, bytes, error) => {
  const filter = () => new OversizeFilter({ maxPayload, protocolVersion: 5 });
  expect(() => filter().pass(Buffer.from(bytes))).toThrow(error);
  const one = filter();
  expect(() => {
    for (const byte of bytes) one.pass(Buffer.from([byte]));
  }).toThrow(error);
});

test("properties beyond 64 KiB count as too large, whatever the payload", () => {
  const filter = new OversizeFilter({ maxPayload, protocolVersion: 5 });
  const userProperties = { a: Array.from({ length: 3_000 }, () => "x".repeat(30)) };
  const packet = {
    topic: "a",
    payload: "1",
    qos: 0,
    dup: false,
    retain: false,
    properties: { userProperties },
  } as const;
  const bytes = generate({ cmd: "publish", ...packet }, { protocolVersion: 5 });
  expect(filter.pass(bytes)).toEqual(Buffer.from([0x30, 4, 0, 1, 0x61, 0]));
  expect(filter.nextPublish()).toBe(1);
});
