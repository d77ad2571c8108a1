// A misbehaving device on real sockets: every stored value is correct, and polling continues.
// An unhandled rejection fails the run.
import { expect, test } from "vitest";
import type { Reading } from "../../src/core/source.ts";
import { adversaryServer, endure, endureMany } from "../support/modbus-endurance.ts";
import { testRuntime } from "../support/runtime.ts";

test("for a faulty device every good reading is right, every bad one has a reason, and polling continues", async () => {
  await using server = await adversaryServer(7);
  const runtime = testRuntime();
  let good = 0;

  const enough = ({ quality }: Reading) => (quality === "good" ? ++good : good) >= 200;
  const { faults, opened } = await endure(server.url, { enough }, runtime, AbortSignal.timeout(25_000));

  expect(faults).toEqual([]);
  expect(opened).toBeGreaterThan(1);
  expect(server.done.size).toBeGreaterThan(12);
  expect(runtime.metric("source_modbus_discarded_replies_total")).toBeGreaterThan(0);
});

// The long form:
// `TAGFERRY_ADVERSARY=1000000 npx vitest run --config test/vitest.config.ts test/integration/modbus-adversary`
const replies = Number(process.env.TAGFERRY_ADVERSARY ?? 5_000);
/** Each device sends enough replies for correct ones to be a small part of them. */
const devices = Math.min(150, Math.ceil(replies / 130));
/** Allows for a slow machine under load. */
const timeoutMs = 60_000 + replies * 5;

test(
  `the same of many devices at once, for ${replies} replies: no value is wrong, no poll hangs`,
  async () => {
    const { faults, opened, answered } = await endureMany({ devices, replies, timeoutMs });

    expect(faults).toEqual([]);
    expect(answered).toBeGreaterThanOrEqual(replies);
    expect(opened).toBeGreaterThan(devices);
  },
  timeoutMs + 10_000,
);
