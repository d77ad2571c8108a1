import fc from "fast-check";
import { generate, type IPublishPacket, type Packet, parser } from "mqtt-packet";
import { expect, test } from "vitest";
import { exactlyOnce, type Message, packetReader } from "../../../../src/source/mqtt/connection/packet-reader.ts";
import { runs } from "../../../support/property.ts";

type Version = 4 | 5;
const maxPayload = 300;
/** The bytes that a reader may hold of a PUBLISH in addition to the payload: topic, identifier and properties. */
const heads = 420;

type Received = Packet | Message;
/** Returns messages and other packets in order. Throws the error that would close the connection. */
function read(chunks: Iterable<Buffer>, version: Version, receive = (_message: Message) => true) {
  const received: Received[] = [];
  const incoming = parser({ protocolVersion: version });
  incoming.on("packet", (packet) => received.push(packet));
  const reader = packetReader(
    { maxPayload, protocolVersion: version },
    {
      receive: (message) => {
        received.push(message);
        return receive(message);
      },
      pass: (part, done) => {
        incoming.parse(part);
        done();
      },
      fail: (error) => {
        throw error;
      },
    },
  );
  let held = 0;
  let written = 0;
  let done = 0;
  for (const chunk of chunks) {
    written++;
    reader.write(chunk, () => done++);
    held = Math.max(held, reader.heldBytes);
  }
  return { received, held, reader, isDone: () => done === written };
}

/** The oracle: what the library's own parser returns, without payloads that are too large. */
function expected(bytes: Buffer, version: Version): Received[] {
  const incoming = parser({ protocolVersion: version });
  const received: Received[] = [];
  incoming.on("packet", (packet) => received.push(packet.cmd === "publish" ? messageOf(packet) : packet));
  incoming.parse(bytes);
  return received;
}

function messageOf({ topic, payload, qos, messageId = 0, retain, properties }: IPublishPacket): Message {
  const bytes = Buffer.from(payload);
  const isSkipped = bytes.length > maxPayload;
  return {
    topic,
    payload: isSkipped ? Buffer.alloc(0) : bytes,
    skippedBytes: isSkipped ? bytes.length : undefined,
    retained: retain,
    properties: isSkipped || !properties?.userProperties ? undefined : { ...properties.userProperties },
    subscriptions: isSkipped ? undefined : identifiers(properties),
    held: qos === 0 ? undefined : messageId + (qos === 2 ? exactlyOnce : 0),
  };
}

function identifiers(properties: IPublishPacket["properties"]): readonly number[] | undefined {
  const found = properties?.subscriptionIdentifier;
  return found === undefined ? undefined : [found].flat();
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
      user: fc.array(fc.string({ minLength: 1, maxLength: 40, unit: fc.constantFrom("a", "ü") }), { maxLength: 3 }),
      others: fc.boolean(),
    })
    .map(
      ({ topic, size, qos, messageId, retain, dup, user, others }): Packet => ({
        cmd: "publish",
        topic,
        payload: Buffer.alloc(size, "x"),
        qos,
        retain,
        dup: qos > 0 && dup,
        ...(qos > 0 && { messageId }),
        ...(version === 5 && {
          properties: {
            ...(user.length > 0 && {
              userProperties: user.length === 1 ? { user: user[0] ?? "" } : { user, more: "1" },
            }),
            ...(others && { ...otherProperties, correlationData: Buffer.from([size % 256]) }),
          },
        }),
      }),
    );
const otherProperties = {
  payloadFormatIndicator: true,
  messageExpiryInterval: 60,
  contentType: "application/json",
  responseTopic: "a/b",
  subscriptionIdentifier: [300, 268_435_455],
};
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

test("whatever the chunks, every packet is read in order, with an empty payload in place of one that is too large", () => {
  fc.assert(
    fc.property(stream, ({ version, packets, cuts }) => {
      const bytes = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: version })));
      const { received, held, isDone } = read(cutUp(bytes, cuts), version);
      expect(received.map(plain)).toEqual(expected(bytes, version).map(plain));
      expect(isDone()).toBe(true);
      expect(held).toBeLessThanOrEqual(maxPayload + heads);
    }),
    runs(150),
  );
});

/** Plain objects, so that packets compare equal whatever class the parser uses. */
const plain = (received: Received) => ({
  ...received,
  ...("payload" in received && { payload: received.payload?.toString("latin1") }),
});

test("whatever bytes come, they are read or end the connection with a reason, and bounded memory is held", () => {
  // Meaningful types and lengths, and random bytes.
  const piece = fc.oneof(
    fc.uint8Array({ minLength: 1, maxLength: 30 }),
    fc.constantFrom(
      [0x30, 9, 0, 1, 0x61],
      [0x32, 0x80, 0x10, 0, 2],
      [0x36, 4],
      [0x34, 8, 0, 1, 0x61, 0, 1, 3, 38, 0],
      [0x90, 3],
    ),
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 30 }), fc.constantFrom<Version>(4, 5), (pieces, version) => {
      const errors: Error[] = [];
      const pass = (_part: Buffer, done: () => void) => done();
      const sinks = { receive: () => true, pass, fail: (error: Error) => void errors.push(error) };
      const reader = packetReader({ maxPayload, protocolVersion: version }, sinks);
      let read = 0;
      for (const [i, bytes] of pieces.entries()) {
        reader.write(Buffer.from(bytes), () => read++);
        if (errors.length > 0) break;
        expect(read).toBe(i + 1);
        expect(reader.heldBytes).toBeLessThanOrEqual(maxPayload + 65_536 + 10);
      }
      for (const { message } of errors) expect(message).toMatch(/^the broker sent a (?:packet|message) /);
    }),
    runs(300),
  );
});

test("a stream divided at any byte is read like a whole one", () => {
  const packets: readonly Packet[] = [
    { cmd: "publish", topic: "line/a", payload: "21", qos: 1, messageId: 1, dup: false, retain: false },
    { cmd: "publish", topic: "line/big", payload: "x".repeat(500), qos: 2, messageId: 2, dup: true, retain: true },
    { cmd: "pingresp" },
    { cmd: "publish", topic: "line/fits", payload: "y".repeat(300), qos: 0, dup: false, retain: false },
    { cmd: "publish", topic: "line/big", payload: "z".repeat(301), qos: 0, dup: false, retain: false },
  ];
  for (const version of [4, 5] as const) {
    const bytes = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion: version })));
    const whole = read([bytes], version).received;
    expect(whole.map((each) => ("cmd" in each ? each.cmd : each.skippedBytes))).toEqual([
      undefined,
      500,
      "pingresp",
      undefined,
      301,
    ]);
    for (let at = 1; at < bytes.length; at++)
      expect(read([bytes.subarray(0, at), bytes.subarray(at)], version).received.map(plain)).toEqual(whole.map(plain));
  }
});

const small = { cmd: "publish", topic: "a", payload: "1", qos: 0, dup: false, retain: false } as const;

test("payloads are parts of the chunk, without a copy", () => {
  const chunk = Buffer.concat(Array.from({ length: 50 }, () => generate(small)));
  const { received } = read([chunk], 4);
  const inChunk = received.filter((each) => !("cmd" in each) && each.payload.buffer === chunk.buffer);
  expect(inChunk).toHaveLength(50);
});

test("a message that is not accepted stops everything after it until reading continues", () => {
  const bytes = Buffer.concat([generate(small), generate(small), generate({ cmd: "pingresp" }), generate(small)]);
  const { received, reader, isDone } = read([bytes], 4, () => false);
  for (const count of [1, 2, 4]) {
    expect(received).toHaveLength(count);
    expect(isDone()).toBe(false);
    reader.resume();
  }
  expect(isDone()).toBe(true);
});

test("a chunk of packets for the library that it takes at once is read without nesting", () => {
  const chunk = Buffer.concat(
    Array.from({ length: 50_000 }, (_, i) => (i % 2 ? generate({ cmd: "pingresp" }) : generate(small))),
  );
  expect(read([chunk], 4).received).toHaveLength(50_000);
});

test("250 MB of payload pass in chunks without being kept", () => {
  const length = 250_000_000;
  const head = Buffer.from([0x32, 0x80 | (length & 127), 0x80 | ((length >> 7) & 127), 0x80 | ((length >> 14) & 127)]);
  const begin = Buffer.concat([head, Buffer.from([length >> 21, 0, 1, 0x61, 0, 5])]);
  const chunk = Buffer.alloc(65_536);
  function* chunks() {
    yield begin;
    for (let rest = length - 5; rest > 0; rest -= chunk.length) yield chunk.subarray(0, Math.min(rest, chunk.length));
  }
  const { received, held } = read(chunks(), 4);
  expect(received).toMatchObject([{ topic: "a", held: 5, skippedBytes: length - 5, payload: Buffer.alloc(0) }]);
  expect(held).toBe(0);
});

test.each([
  ["a length of five bytes", [0x30, 0x80, 0x80, 0x80, 0x80, 0x01], /more than four bytes/],
  ["a length of five bytes that is not complete", [0x30, 0xff, 0xff, 0xff, 0xff], /more than four bytes/],
  ["a SUBACK of 200 MB", [0x90, 0x80, 0x80, 0x80, 0x64], /type 9 with 209715200 bytes/],
  ["a topic that is longer than its message", [0x30, 0xb0, 0x02, 0xff, 0xff, 0x61], /longer than the message/],
  ["properties longer than their message", [0x30, 0xb0, 0x02, 0, 1, 0x61, 0xff, 0xff, 0x7f], /longer than the message/],
  ["a small message whose topic is longer", [0x30, 3, 0, 2, 0x61], /longer than the message/],
  ["a message without a topic", [0x30, 1, 0], /longer than the message/],
  ["a message without the length of its properties", [0x30, 3, 0, 1, 0x61], /longer than the message/],
  ["a property that ends beyond the properties", [0x30, 7, 0, 1, 0x61, 3, 3, 0, 9], /longer than the message/],
  ["a topic alias, which CONNECT does not permit", [0x30, 6, 0, 0, 3, 35, 0, 1], /property 35/],
  ["a message of QoS 3", [0x36, 3, 0, 1, 0x61], /QoS 3/],
])("%s ends the connection, whatever the chunks", (_, bytes, error) => {
  expect(() => read([Buffer.from(bytes)], 5)).toThrow(error);
  expect(() =>
    read(
      bytes.map((byte) => Buffer.from([byte])),
      5,
    ),
  ).toThrow(error);
});

test("properties beyond 64 KiB count as too large, whatever the payload", () => {
  const userProperties = { a: Array.from({ length: 3_000 }, () => "x".repeat(30)) };
  const bytes = generate({ ...small, properties: { userProperties } }, { protocolVersion: 5 });
  expect(read([bytes], 5).received).toMatchObject([{ topic: "a", skippedBytes: 1, payload: Buffer.alloc(0) }]);
});
