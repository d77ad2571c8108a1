// The packet search that proves that the suite never writes: it would detect a write request.
import { expect, test } from "vitest";
import { asciiCodec, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { mbapFrame } from "../../../support/modbus-adversary.ts";
import { functionsIn } from "../../../support/modbus-functions.ts";

const reading = [3, 0, 0, 0, 10];
const requests = [
  reading,
  [1, 0, 0, 0, 1],
  [5, 0, 1, 0xff, 0],
  [6, 0, 1, 0, 7],
  [15, 0, 0, 0, 10, 2, 0xff, 3],
  [16, 0, 1, 0, 2, 4, 0, 1, 0, 2],
  [17],
  [43, 14, 2, 0],
  reading,
].map((pdu) => Uint8Array.from(pdu));
const codes = requests.map(([code]) => code);

test.each([
  ["rtu", (pdu: Uint8Array) => rtuCodec.encode({ unit: 1, pdu })],
  ["ascii", (pdu: Uint8Array) => asciiCodec.encode({ unit: 1, pdu })],
  // Transaction IDs that look like the start of another kind of frame.
  ["mbap", (pdu: Uint8Array) => mbapFrame(0x3a31, 1, pdu)],
] as const)("every function sent over %s is seen, also those that write", (_name, frame) => {
  const stream = Buffer.concat(requests.map(frame));

  expect(functionsIn(stream)).toEqual(codes);
  expect(() => functionsIn(stream.subarray(0, -1))).toThrow("no requests");
});

test("requests on a line whose length field would fit Modbus TCP are not mistaken for it", () => {
  const twice = Array.from({ length: 2 }, () => rtuCodec.encode({ unit: 1, pdu: Uint8Array.from(reading) }));
  expect(functionsIn(Buffer.concat(twice))).toEqual([3, 3]);
});
