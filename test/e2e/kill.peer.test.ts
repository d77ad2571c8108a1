// The long form of kill.test.ts, against mosquitto with a persistent session.
import { expect, test } from "vitest";
import { openMosquitto } from "../support/mosquitto.ts";
import { killDrill } from "./kill-drill.ts";

const kills = Number(process.env.TAGFERRY_KILLS ?? 50);

test(`every message acknowledged to mosquitto is in the service after ${kills} kills at random moments`, {
  timeout: 60_000 + kills * 6_000,
}, async () => {
  await using broker = await openMosquitto();
  const result = await killDrill({ broker, kills, messagesPerSecond: 500, seed: 50 });
  expect(result.missing).toEqual([]);
  expect(result.published).toBeGreaterThan(kills * 100);
});
