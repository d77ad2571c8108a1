// The long form of kill.test.ts, against mosquitto with a persistent session.
import { expect, test } from "vitest";
import { openMosquitto } from "../support/mosquitto.ts";
import { killDrill } from "./kill-drill.ts";

const kills = Number(process.env.TAGFERRY_KILLS ?? 50);

/** Milliseconds: mosquitto writes what it has once a second here, at a turn of its loop. */
const unsavedMs = 3_000;

test("mosquitto and the agent killed in turn under load: what the broker had on disk arrives, and nothing is stored twice", {
  timeout: 180_000,
}, async () => {
  await using broker = await openMosquitto();
  const killedAt: number[] = [];
  const disturb = async () => {
    await broker.stop("SIGKILL");
    killedAt.push(performance.now());
    await broker.start();
  };
  // What it acknowledged to the publisher and had not written yet it has lost itself.
  const excused = (at: number) => killedAt.some((killed) => at > killed - unsavedMs && at <= killed);
  const result = await killDrill({ broker, kills: 5, messagesPerSecond: 500, seed: 7, disturb, excused });
  expect(result).toMatchObject({ missing: [], repeated: [] });
  expect(result.published).toBeGreaterThan(2_000);
});

test(`every message acknowledged to mosquitto is in the service after ${kills} kills at random moments`, {
  // Each start of the agent may take long on a machine that is busy; the waits within have bounds of their own.
  timeout: 120_000 + kills * 20_000,
}, async () => {
  await using broker = await openMosquitto();
  const result = await killDrill({ broker, kills, messagesPerSecond: 500, seed: 50 });
  expect(result).toMatchObject({ missing: [], repeated: [] });
  expect(result.published).toBeGreaterThan(kills * 100);
});
