// The long form of kill.test.ts, against mosquitto with a persistent session.
import { expect, test } from "vitest";
import { openMosquitto } from "../support/mosquitto.ts";
import { seed } from "../support/property.ts";
import { killDrill } from "./kill-drill.ts";

const kills = Number(process.env.TAGFERRY_KILLS ?? 50);

test(`with mosquitto and the agent killed in turn under load, messages on the broker's disk arrive, and none is stored twice, seed ${seed}`, {
  timeout: 180_000,
}, async () => {
  await using broker = await openMosquitto();
  const lost: { readonly from: number; readonly to: number }[] = [];
  const disturb = async () => {
    const from = performance.now();
    await broker.save();
    await broker.stop("SIGKILL");
    await broker.start();
    lost.push({ from, to: performance.now() });
  };
  // mosquitto loses messages that it acknowledged to the publisher between its last save and its kill.
  const excused = (at: number) => lost.some(({ from, to }) => at > from && at <= to);
  const result = await killDrill({ broker, kills: 5, messagesPerSecond: 500, seed, disturb, excused });
  expect(result).toMatchObject({ missing: [], repeated: [] });
  expect(result.published - result.excused).toBeGreaterThan(1_500);
});

test(`every message acknowledged to mosquitto is in the service after ${kills} kills at random moments, seed ${seed}`, {
  // Each start of the agent may take long on a busy machine. Each wait within has its own limit.
  timeout: 120_000 + kills * 20_000,
}, async () => {
  await using broker = await openMosquitto();
  const result = await killDrill({ broker, kills, messagesPerSecond: 500, seed });
  expect(result).toMatchObject({ missing: [], repeated: [] });
  expect(result.published).toBeGreaterThan(kills * 100);
});

test("without the wait for the disk before the acknowledgement the same drill finds missing messages", {
  timeout: 300_000,
}, async () => {
  await using broker = await openMosquitto();
  const entry = new URL("../support/agent-without-sync.ts", import.meta.url).pathname;
  const result = await killDrill({ broker, entry, kills: 4, messagesPerSecond: 500, seed: 1 });
  expect(result.missing).not.toEqual([]);
});
