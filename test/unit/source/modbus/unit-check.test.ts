// `check --online` allows a minute for all sources. A gateway with many dead units must report within it.
import { expect, test } from "vitest";
import { pollTargets } from "../../../../src/source/modbus/config/tag-reads.ts";
import type { Result } from "../../../../src/source/modbus/connection/result.ts";
import { checkUnits } from "../../../../src/source/modbus/polling/unit-check.ts";
import { modbusConfig } from "../../../support/modbus-source.ts";
import { ManualClock } from "../../../support/runtime.ts";

const { signal } = new AbortController();

test("of many mostly dead units each is reported within a minute, and answering ones are found", async () => {
  const clock = new ManualClock();
  const tags = Array.from({ length: 60 }, (_, unit) =>
    Array.from({ length: 4 }, (_, i) => ({ unit: unit + 1, at: `hr:${i * 10}` })),
  ).flat();
  const link = {
    async read({ unit }: { readonly unit: number }, timeoutMs: number): Promise<Result> {
      if (unit % 20 === 0) return { kind: "data", bytes: Uint8Array.of(0, 7), at: clock.now(), tookMs: 1 };
      await clock.advance(timeoutMs);
      return { kind: "silence", mismatch: undefined, received: false };
    },
  };
  const { devices: checks } = await checkUnits(
    pollTargets(modbusConfig({ url: "tcp://127.0.0.1" }, tags)),
    link,
    { hint: "hint", url: "tcp://127.0.0.1" },
    clock,
    signal,
  );
  expect(clock.monotonic()).toBeLessThan(60_000);
  expect(checks).toHaveLength(60);
  expect(checks[19]).toMatchObject({ device: "unit 20", ok: true });
  expect(checks[0]).toMatchObject({ ok: false, text: "did not answer within 3s" });
  expect(checks[58]).toMatchObject({ device: "unit 59", ok: false, text: expect.stringContaining("was not asked") });
});

test("if a device closes the connection, the remedy names other clients first", async () => {
  const closed = "127.0.0.1:502 closed the connection";
  const { devices: checks } = await checkUnits(
    pollTargets(modbusConfig({ url: "tcp://127.0.0.1" }, [{ unit: 1, at: "hr:0" }])),
    { read: async (): Promise<Result> => ({ kind: "silence", mismatch: undefined, received: false, closed }) },
    { hint: "hint", url: "tcp://127.0.0.1" },
    new ManualClock(),
    signal,
  );
  expect(checks).toEqual([
    {
      device: "unit 1",
      ok: false,
      text: `did not answer: ${closed}`,
      remedy: "the device may allow fewer connections than there are clients: end one of the others; or hint",
    },
  ]);
});
