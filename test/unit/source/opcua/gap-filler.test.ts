// Gaps whose history is late or temporarily unavailable.
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { Reading, TagGap, TagId } from "../../../../src/core/source.ts";
import { defaultTimeRule } from "../../../../src/lib/readings/device-time.ts";
import { gapFiller } from "../../../../src/source/opcua/history/gap-filler.ts";
import type { Services } from "../../../../src/source/opcua/session/services.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { testRuntime } from "../../../support/runtime.ts";

const runtime = testRuntime();
const nowMs = Math.floor(runtime.clock.now() / 1_000);
const item = opcuaItem();
const gap = (valueAtEnd = true) => ({
  item,
  key: "Temp",
  from: epochMicros((nowMs - 9_000) * 1_000),
  to: epochMicros((nowMs - 5_000) * 1_000),
  causes: new Set(["interruption" as const]),
  valueAtEnd,
});

/** A server whose access levels and history are read from `server` at each request. */
function filler(server: { level: object; accessLevel?: object; history?: ua.StatusCode; recorded: number[] }) {
  const [readings, gaps]: [Reading[], TagGap[]] = [[], []];
  let asked = 0;
  const dataValue = (seconds: number) => ({
    value: { dataType: ua.DataType.Double, value: seconds },
    sourceTimestamp: new Date(nowMs + seconds * 1_000),
  });
  const link = opcuaLink((request) => {
    if (!(request instanceof ua.HistoryReadRequest)) throw new TypeError("HistoryRead only");
    asked += request.nodesToRead?.length ?? 0;
    const details = request.historyReadDetails;
    const [from, to] =
      details instanceof ua.ReadRawModifiedDetails ? [Number(details.startTime), Number(details.endTime)] : [0, 0];
    const within = server.recorded.filter((seconds) => {
      const time = nowMs + seconds * 1_000;
      return time >= from && time < to;
    });
    const historyData = new ua.HistoryData({ dataValues: within.map(dataValue) });
    const statusCode = server.history ?? ua.StatusCodes.Good;
    return new ua.HistoryReadResponse({ results: [{ historyData, statusCode }] });
  });
  const services = {
    read: async ([target]: readonly { readonly attributeId: number }[]) => [
      target?.attributeId === ua.AttributeIds.AccessLevel ? (server.accessLevel ?? server.level) : server.level,
    ],
  } as unknown as Services; // the only part that is used
  const made = gapFiller(
    {
      link,
      services,
      structures: { learn: async () => {} },
      runtime,
      source: "line",
      maxGapMs: 3_600_000,
      time: { ...defaultTimeRule, clock: "source" },
      serverStarted: undefined,
      limit: 0,
      async deliver(more, reported, stored) {
        readings.push(...more);
        gaps.push(...reported);
        stored();
      },
    },
    () => {},
  );
  const fill = (...each: ReturnType<typeof gap>[]) =>
    made(each.length > 0 ? each : [gap()], new AbortController().signal);
  return {
    fill,
    readings,
    values: () => readings.map(({ value }) => value),
    states: () => gaps.map(({ state }) => state),
    gaps,
    asked: () => asked,
  };
}
const readable = { value: { value: 5 }, statusCode: { name: "Good" } };

test("a history that does not yet have the value at the end of a gap is read again, and then trusted", async () => {
  const server = { level: readable, recorded: [-9, -8] };
  const { fill, values, states } = filler(server);
  expect(await fill()).toHaveLength(1);
  expect(states()).toEqual([]);
  server.recorded = [-9, -8, -7, -6, -5];
  expect(await fill()).toEqual([]);
  expect(values()).toEqual([-8, -8, -7, -6]);
  expect(states()).toEqual(["filled"]);
});

test("a gap without an end is filled with the available values, and a history that never has the end is trusted finally", async () => {
  const { fill, states } = filler({ level: readable, recorded: [-8] });
  expect(await fill(gap(false))).toEqual([]);
  expect(states()).toEqual(["filled"]);
  for (const left of [1, 1, 0]) expect(await fill()).toHaveLength(left);
  expect(states()).toEqual(["filled", "filled"]);
});

test("a history without any value, not even those at the ends of the gap, does not fill it", async () => {
  const { fill, gaps } = filler({ level: readable, recorded: [] });
  for (const left of [1, 1, 0]) expect(await fill()).toHaveLength(left);
  expect(gaps).toMatchObject([{ state: "lost", reason: "the history has no value of this time" }]);
});

test("a node whose access level is temporarily unreadable is not abandoned", async () => {
  const server = { level: { value: null, statusCode: { name: "BadNotConnected" } } as object, recorded: [-8, -5] };
  const { fill, states } = filler(server);
  expect(await fill()).toHaveLength(1);
  expect(states()).toEqual([]);
  server.level = readable;
  expect(await fill()).toEqual([]);
  server.level = { value: { value: 1 }, statusCode: { name: "Good" } };
  expect(await fill()).toEqual([]);
  expect(states()).toEqual(["filled", "lost"]);
});

const unreadable = { value: null, statusCode: { name: "BadInternalError" } };

test("when the user's access level is unreadable the access level decides whether there is a history", async () => {
  const filled = filler({ level: unreadable, accessLevel: readable, recorded: [-8, -5] });
  expect(await filled.fill()).toEqual([]);
  expect(filled.states()).toEqual(["filled"]);
  const none = { value: { value: 1 }, statusCode: { name: "Good" } };
  const lost = filler({ level: unreadable, accessLevel: none, recorded: [-8, -5] });
  expect(await lost.fill()).toEqual([]);
  expect(lost.states()).toEqual(["lost"]);
});

test("when neither is readable the history itself is tried, and a gap that always fails is lost after ten attempts", async () => {
  const filled = filler({ level: unreadable, recorded: [-8, -5] });
  expect(await filled.fill()).toEqual([]);
  expect(filled.states()).toEqual(["filled"]);
  const { fill, states } = filler({ level: unreadable, history: ua.StatusCodes.BadInternalError, recorded: [] });
  for (let attempt = 1; attempt < 10; attempt++) expect(await fill()).toHaveLength(1);
  expect(states()).toEqual([]);
  expect(await fill()).toEqual([]);
  expect(states()).toEqual(["lost"]);
});

test("an offline device behind the server is awaited, however long that takes", async () => {
  const { fill, states } = filler({ level: readable, history: ua.StatusCodes.BadNoCommunication, recorded: [] });
  for (let attempt = 1; attempt < 30; attempt++) expect(await fill()).toHaveLength(1);
  expect(states()).toEqual([]);
});

test("tags of one variable with the same gap are filled by one read", async () => {
  const { fill, readings, gaps, asked } = filler({ level: readable, recorded: [-8, -5] });
  const tags = [0, 1, 2].map((tag) => ({ ...gap(), item: { ...item, tag: tag as TagId }, key: `Temp[${tag}]` }));
  expect(await fill(...tags)).toEqual([]);
  expect(asked()).toBe(1);
  expect(readings).toMatchObject([0, 1, 2].map((tag) => ({ tag, value: -8, historical: true })));
  expect(gaps).toMatchObject([0, 1, 2].map((tag) => ({ tag, state: "filled" })));
});
