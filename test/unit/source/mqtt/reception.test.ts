import { expect, test } from "vitest";
import type { Captures } from "../../../../src/core/source.ts";
import { Reception } from "../../../../src/source/mqtt/reception/reception.ts";
import { mqttConfig } from "../../../support/mqtt-source.ts";
import { testRuntime } from "../../../support/runtime.ts";

test("100,000 topics that come round in turn are looked up once each", async () => {
  const { tags } = mqttConfig({ options: { url: "mqtt://broker" }, tags: [{ topic: "line/{n}" }] });
  const link = { acknowledge() {}, publish() {}, resume() {} };
  const options = { source: "hall", tags, maxPayload: 100, requestRebirth: false };
  const reception = new Reception(options, testRuntime(), link);
  const { signal } = new AbortController();
  const payload = Buffer.from("1");
  const last = 100_001;
  const seen: Captures[] = [];
  for (let i = 0; i <= last; i++) {
    const goesOn = reception.receive({ topic: `line/${i % 100_000}`, payload, retained: false, held: undefined });
    if (goesOn && i < last) continue;
    const delivery = await reception.take(signal);
    for (const { captures } of delivery.readings) if (captures["n"] === "1") seen.push(captures);
    delivery.ack();
  }

  expect(seen).toHaveLength(2);
  expect(seen[1]).toBe(seen[0]);
});
