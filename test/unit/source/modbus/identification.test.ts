import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { IdentityRequest } from "../../../../src/source/modbus/config/pdu.ts";
import type { Result } from "../../../../src/source/modbus/connection/result.ts";
import { identify } from "../../../../src/source/modbus/discovery/identification.ts";
import { asciiCodec, type BusCodec, rtuCodec } from "../../../../src/source/modbus/framing/bus-codec.ts";
import { BusFraming } from "../../../../src/source/modbus/framing/bus-framing.ts";
import { MbapFraming } from "../../../../src/source/modbus/framing/mbap-framing.ts";
import { mbapFrame } from "../../../support/modbus-adversary.ts";
import { typedFraming } from "../../../support/modbus-typed-framing.ts";
import { runs } from "../../../support/property.ts";

const bytes = (...values: number[]) => Uint8Array.from(values);
const objects: IdentityRequest = { unit: 1, identity: "objects", category: "regular", from: 0 };
const serverId: IdentityRequest = { unit: 1, identity: "serverId" };
const object = (number: number, text: string) => [number, text.length, ...Buffer.from(text)];
const answer = (more: number, next: number, ...all: readonly number[][]) =>
  bytes(43, 14, 2, 0x82, more, next, all.length, ...all.flat());

test("a request for identification has exactly these bytes, and none that could write", () => {
  const framing = typedFraming(new MbapFraming({ anyUnit: false }));
  expect(framing.begin(objects)).toEqual(bytes(0, 0, 0, 0, 0, 5, 1, 43, 14, 2, 0));
  expect(framing.begin(serverId)).toEqual(bytes(0, 1, 0, 0, 0, 2, 1, 17));
});

test("an identification is accepted only with its stated length", () => {
  const whole = answer(0, 0, object(0, "Acme"), object(1, ""));
  for (const [wrong, request] of [
    [whole.subarray(0, -1), objects],
    [bytes(...whole, 0), objects],
    [bytes(43, 13, ...whole.subarray(2)), objects],
    [bytes(43, 14, 2, 0x82, 0, 0), objects],
    [bytes(17, 3, 1, 0xff), serverId],
    [whole, serverId],
  ] as const) {
    const framing = typedFraming(new MbapFraming({ anyUnit: false }));
    framing.begin(request);
    expect(framing.receive(mbapFrame(0, 1, wrong)), Buffer.from(wrong).toString("hex")).toBeUndefined();
    expect(framing.mismatch).toBeDefined();
  }
  const framing = typedFraming(new MbapFraming({ anyUnit: false }));
  framing.begin(objects);
  expect(framing.receive(mbapFrame(0, 1, whole))).toEqual({ kind: "data", bytes: whole.slice(2) });
});

describe.each([
  ["rtu", rtuCodec],
  ["ascii", asciiCodec],
] as const)("over %s", (_name, codec: BusCodec) => {
  test("an identification is found byte by byte, after noise and after the echo of the request", () => {
    for (const [request, pdu] of [
      [objects, answer(0xff, 5, object(0, "Acme"), object(1, "x".repeat(100)))],
      [serverId, bytes(17, 5, 1, 0xff, 0x41, 0x42, 0x43)],
      [serverId, bytes(0x91, 1)],
      [objects, bytes(0xab, 3)],
    ] as const) {
      const framing = typedFraming(new BusFraming({ codec, reopen: false }));
      const sent = framing.begin(request);
      const chunks = [...bytes(0, 0x55, 3, 0xff), ...sent, ...codec.encode({ unit: 1, pdu })];
      const answers = chunks.map((byte) => framing.receive(bytes(byte)));
      expect(answers.slice(0, -1).every((one) => one === undefined)).toBe(true);
      expect(answers.at(-1)).toEqual(
        pdu[0]! > 0x80 ? { kind: "exception", code: pdu[1] } : { kind: "data", bytes: pdu.slice(2) },
      );
    }
  });
});

test("scanning any bytes for an identification ends and never throws", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom(objects, serverId), (noise, request) => {
      const { rest } = rtuCodec.scan(bytes(1, 43, 14, ...noise), request);
      expect(rest).toBeLessThanOrEqual(noise.length + 3);
    }),
    runs(2_000),
  );
});

/** A device that answers with `tell`. */
function asking(tell: (request: IdentityRequest, nth: number) => Result) {
  const asked: IdentityRequest[] = [];
  return { asked, ask: async (request: IdentityRequest) => tell(request, asked.push(request)) };
}

test("a device that supports only the basic identification is asked for that", async () => {
  const { ask, asked } = asking((request) =>
    request.identity === "objects" && request.category === "basic"
      ? { kind: "data", bytes: answer(0, 0, object(0, "Acme")).slice(2), at: epochMicros(0), tookMs: 0 }
      : { kind: "exception", code: request.identity === "objects" ? 3 : 1, at: epochMicros(0), tookMs: 0 },
  );
  expect(await identify(1, ask)).toEqual([{ name: "VendorName", text: "Acme" }]);
  expect(asked).toHaveLength(3);
});

test("a device that supports neither function is asked twice; an endless identification is abandoned", async () => {
  const none = asking(() => ({ kind: "exception", code: 1, at: epochMicros(0), tookMs: 0 }));
  expect(await identify(1, none.ask)).toEqual([]);
  expect(none.asked).toHaveLength(2);

  const endless = asking((_request, nth) => ({
    kind: "data",
    bytes: answer(0xff, nth, object(nth, "again")).slice(2),
    at: epochMicros(0),
    tookMs: 0,
  }));
  await identify(1, endless.ask);
  expect(endless.asked.length).toBeLessThan(20);

  const stuck = asking(() => ({
    kind: "data",
    bytes: answer(0xff, 0, object(0, "again")).slice(2),
    at: epochMicros(0),
    tookMs: 0,
  }));
  await identify(1, stuck.ask);
  expect(stuck.asked).toHaveLength(2);
});
