// Random restarts of the server and cuts of the network: every value the server held is in the service or in the gap record.
// TAGFERRY_OPCUA_EVENTS=200 for the long form; TAGFERRY_OPCUA_SEED for another story.
import { expect, test } from "vitest";
import { opcuaDrill } from "../support/opcua-drill.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const events = Number(process.env.TAGFERRY_OPCUA_EVENTS ?? 10);
const seed = Number(process.env.TAGFERRY_OPCUA_SEED ?? 8);

test(`after ${events} restarts and cuts every value the server held is in the service or in the gap record`, {
  timeout: 120_000 + events * 20_000,
}, async () => {
  using folder = temporaryFolder();
  const { unexplained, gaps, ...figures } = await opcuaDrill(folder, events, seed);
  const states = Map.groupBy(gaps, ({ state }) => state);
  const rows = Object.fromEntries([...states].map(([state, all]) => [state, all.length]));
  process.stdout.write(`${JSON.stringify({ ...figures, rows })}\n`);
  expect(unexplained).toEqual([]);
  expect(figures.held).toBeGreaterThan(events);
});
