// Restarts of server and agent, network outages and session timeouts: every value that the server held is in the
// service or in the gap record, and undisturbed values are not reported as lost.
// TAGFERRY_OPCUA_EVENTS=200 runs the long form; TAGFERRY_SEED chooses another sequence.
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
  // Otherwise a record that reports everything as lost would pass.
  expect(figures.lostInPeaceSeconds, story).toBeLessThan(0.1 * events);
  expect(figures.held).toBeGreaterThan(events);
  expect(figures.stored).toBeLessThan(figures.held);
});
