import fc from "fast-check";
import { generate } from "mqtt-packet";
import { expect, test } from "vitest";
import { brokerLimits, expectedRefusal, packetsOf } from "../../../../src/source/mqtt/connection/subscriptions.ts";
import { runs } from "../../../support/property.ts";

test("a limit missing from CONNACK does not apply", () => {
  const limits = brokerLimits({});
  expect(["a", "a/+", "#", "$share/g/a", "x".repeat(60_000)].map((filter) => expectedRefusal(filter, limits))).toEqual(
    Array(5).fill(undefined),
  );
});

test.each([
  [{ wildcardSubscriptionAvailable: false }, { "a/b": undefined, "a/+": 162, "#": 162, "$share/g/a": undefined }],
  [
    { sharedSubscriptionAvailable: false },
    { "a/b": undefined, "a/+": undefined, "$share/g/a": 158, "$shared/a": undefined },
  ],
  [{ maximumPacketSize: 20 }, { ["x".repeat(9)]: undefined, ["x".repeat(10)]: 149, ["é".repeat(5)]: 149 }],
] as const)("with %j in CONNACK the reason codes of filters are %j", (properties, expected) => {
  const limits = brokerLimits(properties);
  for (const [filter, code] of Object.entries(expected))
    expect([filter, expectedRefusal(filter, limits)]).toEqual([filter, code]);
});

test("no packet exceeds the broker's limit or 8 filters, and every filter is sent", () => {
  const filters = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 40 }), { maxLength: 60 });
  fc.assert(
    fc.property(filters, fc.integer({ min: 20, max: 400 }), (all, maximumPacketSize) => {
      const limits = brokerLimits({ maximumPacketSize });
      const allowed = all.filter((filter) => expectedRefusal(filter, limits) === undefined);
      const packets = packetsOf(allowed, limits);
      expect(packets.flat()).toEqual(allowed);
      for (const some of packets) {
        const subscriptions = some.map((topic) => ({ topic, qos: 1 as const, nl: false, rap: false, rh: 1 as const }));
        const packet = generate({ cmd: "subscribe", messageId: 1, subscriptions }, { protocolVersion: 5 });
        expect(packet.length).toBeLessThanOrEqual(maximumPacketSize);
        expect(some.length).toBeLessThanOrEqual(8);
      }
    }),
    runs(200),
  );
});
