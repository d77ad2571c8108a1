// Restarts of the server and of the agent, cuts of the network, sessions that time out: every value the server held is in the
// service or in the gap record, and what happened to nothing is not called lost. TAGFERRY_OPCUA_EVENTS=200 for the long
// form; TAGFERRY_SEED for another story.
import { expect, test } from "vitest";
import { opcuaDrill } from "../support/opcua-drill.ts";
import { seed } from "../support/property.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const events = Number(process.env.TAGFERRY_OPCUA_EVENTS ?? 9);

test(`after ${events} restarts and cuts every value of the server is in the service or in the gap record, seed ${seed}`, {
  timeout: 120_000 + events * 20_000,
}, async () => {
  using folder = temporaryFolder();
  const { unexplained, gaps, story, ...figures } = await opcuaDrill(folder, events, seed);
  const states = Map.groupBy(gaps, ({ state }) => state);
  const rows = Object.fromEntries([...states].map(([state, all]) => [state, all.length]));
  process.stdout.write(`${JSON.stringify({ ...figures, rows })}\n`);
  expect(unexplained, story).toEqual([]);
  // A record that calls everything lost explains everything.
  expect(figures.lostInPeaceSeconds, story).toBeLessThan(0.1 * events);
  expect(figures.held).toBeGreaterThan(events);
  expect(figures.stored).toBeLessThan(figures.held);
});
