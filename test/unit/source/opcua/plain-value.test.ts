// The agent's own decoder, compared with the stack's decoding of the same bytes.
import fc from "fast-check";
import { DataValue } from "node-opcua-client";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { readNotification } from "../../../../src/source/opcua/publishing/notification.ts";
import { loadStack } from "../../../../src/source/opcua/stack/stack.ts";
import { BinaryStream } from "../../../../src/source/opcua/stack/stack-parts.ts";
import { readPlainValue } from "../../../../src/source/opcua/types/plain-value.ts";
import { ClockCheck, type NotifiedValue, toReading } from "../../../../src/source/opcua/types/reading.ts";
import { runs } from "../../../support/property.ts";
import { testRuntime } from "../../../support/runtime.ts";

const arrival = epochMicros(Date.parse("2026-03-01T12:00:00Z") * 1_000);
/** Ticks of 100 ns from 1601 to `arrival`. */
const now = (BigInt(arrival / 1_000) + 11_644_473_600_000n) * 10_000n;
const bytesOfType: Readonly<Record<number, number>> = {
  1: 1,
  2: 1,
  3: 1,
  4: 2,
  5: 2,
  6: 4,
  7: 4,
  8: 8,
  9: 8,
  10: 4,
  11: 8,
};

const time = fc.oneof(
  fc.bigInt({ min: now - 36_000_000_000n, max: now + 36_000_000_000n }),
  fc.bigInt({ min: 0n, max: 2_650_467_743_999_999_999n }),
);
const values = fc.record({
  mask: fc.integer({ min: 0, max: 63 }),
  type: fc.integer({ min: 1, max: 11 }),
  bytes: fc.uint8Array({ minLength: 8, maxLength: 8 }),
  status: fc.constantFrom(0, 0, 0x480, 0x4090_0000, 0x8031_0000),
  source: time,
  server: time,
  picoseconds: fc.integer({ min: 0, max: 9_999 }),
});

type Encoded = typeof values extends fc.Arbitrary<infer T> ? T : never;

/** A DataValue (OPC 10000-6, 5.2.2.17). */
function encode({ mask, type, bytes, status, source, server, picoseconds }: Encoded): BinaryStream {
  const stream = new BinaryStream(Buffer.alloc(64));
  const ticks = (value: bigint) => {
    stream.writeUInt32(Number(value & 0xffff_ffffn));
    stream.writeUInt32(Number(value >> 32n));
  };
  stream.writeUInt8(mask);
  if (mask & 1) for (const byte of [type, ...bytes.subarray(0, bytesOfType[type])]) stream.writeUInt8(byte);
  if (mask & 2) stream.writeUInt32(status);
  if (mask & 4) ticks(source);
  if (mask & 16) stream.writeUInt16(picoseconds);
  if (mask & 8) ticks(server);
  if (mask & 32) stream.writeUInt16(picoseconds);
  return stream;
}

test("a plain value equals the result of the stack, to the microsecond and the last byte", () => {
  let plain = 0;
  fc.assert(
    fc.property(values, (value) => {
      const stream = encode(value);
      const end = stream.length;
      stream.rewind();
      const ours = readPlainValue(stream);
      const isPlain = value.mask & 1 && ![8, 9].includes(value.type) && !(value.mask & 2 && value.status !== 0);
      expect(ours !== undefined).toBe(Boolean(isPlain));
      if (!ours) return;
      plain++;
      expect(stream.length).toBe(end);
      stream.rewind();
      const theirs = new DataValue();
      theirs.decode(stream);
      for (const clock of ["source", "server", "arrival"] as const)
        expect(read(ours, clock)).toEqual(read(theirs, clock));
    }),
    runs(500),
  );
  expect(plain).toBeGreaterThan(100);
});

test("a notification gives plain and other values in order, and the remaining fields", async () => {
  const { ua } = await loadStack(testRuntime().log);
  const { Double, String } = ua.DataType;
  const at = new Date("2026-03-01T11:59:59.123Z");
  const variants = [
    { dataType: Double, value: 1.5 },
    { dataType: String, value: "open" },
    { dataType: Double, value: 2.5 },
  ];
  const notificationData = [
    new ua.DataChangeNotification({
      monitoredItems: variants.map((value, i) => ({ clientHandle: i + 7, value: { value, sourceTimestamp: at } })),
    }),
    new ua.DataChangeNotification({}),
    new ua.StatusChangeNotification({ status: ua.StatusCodes.BadTimeout }),
  ];
  const stream = new BinaryStream(1_000);
  new ua.NotificationMessage({ sequenceNumber: 3, notificationData }).encode(stream);
  stream.rewind();
  const message = new ua.NotificationMessage();
  message.decode(stream);
  const { notification, ended } = readNotification(ua, 1, message);
  expect(notification.changes.map(({ handle, value }) => [handle, read(value, "source")])).toEqual([
    [7, expect.objectContaining({ value: 1.5, time: at.getTime() * 1_000 })],
    [8, expect.objectContaining({ value: "open", time: at.getTime() * 1_000 })],
    [9, expect.objectContaining({ value: 2.5, time: at.getTime() * 1_000 })],
  ]);
  expect(notification.changes.map(({ value }) => "source" in value)).toEqual([true, false, true]);
  expect(ended).toBe("BadTimeout");
});

test("a notification that ends after its values, without diagnostics, is decoded as well", async () => {
  const { ua } = await loadStack(testRuntime().log);
  const value = { value: { dataType: ua.DataType.Double, value: 1.5 } };
  const stream = new BinaryStream(100);
  new ua.DataChangeNotification({ monitoredItems: [{ clientHandle: 7, value }] }).encode(stream);
  const whole = stream.length;
  stream.rewind();
  stream.buffer = stream.buffer.subarray(0, whole - 4);
  const change = new ua.DataChangeNotification();
  // readNotification must then continue with the values decoded so far, as for any object whose length differs.
  expect(() => change.decode(stream)).toThrow(RangeError);
  const notificationData = [change];
  const { notification } = readNotification(ua, 1, new ua.NotificationMessage({ notificationData }));
  expect(notification.changes).toMatchObject([{ handle: 7, value: { value: { value: 1.5 } } }]);
});

test("a notification without the values from a malformed one on says so, and has those before it", async () => {
  const { ua } = await loadStack(testRuntime().log);
  const values = [1.5, 2.5, 3.5].map((value) => ({ value: { dataType: ua.DataType.Double, value } }));
  const monitoredItems = values.map((value, i) => ({ clientHandle: i + 7, value }));
  const notificationData = [new ua.DataChangeNotification({ monitoredItems })];
  const stream = new BinaryStream(1_000);
  new ua.NotificationMessage({ sequenceNumber: 3, notificationData }).encode(stream);
  const [handle, noType] = [8, 63];
  const second = stream.buffer.indexOf(Uint8Array.of(handle, 0, 0, 0, 1, ua.DataType.Double));
  stream.buffer[second + 5] = noType;
  stream.rewind();
  const message = new ua.NotificationMessage();
  message.decode(stream);

  const { notification, undecoded } = readNotification(ua, 1, message);

  expect(notification).toMatchObject({ sequenceNumber: 3, changes: [{ handle: 7 }] });
  expect(notification.changes).toHaveLength(1);
  expect(undecoded).toContain("no built-in type 63");
});

function read(value: NotifiedValue, clock: "source" | "server" | "arrival") {
  const of = { tag: 0 as TagId, captures: {}, address: "ns=2;s=T", clockCheck: new ClockCheck() };
  return toReading(value, of, arrival, { unusable: "keep", maxAhead: 300_000, clock });
}
