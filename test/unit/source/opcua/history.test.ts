// Whatever a server permits in one call, all recorded values of a gap are read, and no continuation point is left
// behind.
import fc from "fast-check";
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { type HistoryPage, type HistoryRange, readHistory } from "../../../../src/source/opcua/history/history.ts";
import type { Link } from "../../../../src/source/opcua/session/link.ts";
import { BatchSize } from "../../../../src/source/opcua/session/services.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { runs } from "../../../support/property.ts";

interface Historian {
  /** Source timestamps in milliseconds, ascending, by node. */
  readonly recorded: readonly (readonly number[])[];
  /** The maximum number of nodes per call. More are refused. */
  readonly mostNodes: number;
  /** The maximum number of continuation points. */
  readonly mostPoints: number;
  /** The maximum number of values per node in an answer, whatever was requested. */
  readonly mostValues: number;
  /** The server does not indicate that there are more values. */
  readonly mute: boolean;
}

/** Answers HistoryRead accordingly, and no other service. */
function historian({ recorded, mostNodes, mostPoints, mostValues, mute }: Historian) {
  const points = new Map<string, readonly number[]>();
  let calls = 0;
  let nextPoint = 0;
  const answer = (request: ua.HistoryReadRequest): ua.HistoryReadResponse => {
    const { nodesToRead, historyReadDetails, releaseContinuationPoints } = request;
    const details = historyReadDetails;
    if (!(details instanceof ua.ReadRawModifiedDetails)) throw new TypeError("raw values only");
    calls++;
    if ((nodesToRead?.length ?? 0) > mostNodes)
      throw new AgentError("SOURCE_UNREACHABLE", "HistoryRead: BadTooManyOperations");
    const results = (nodesToRead ?? []).map(({ nodeId, continuationPoint }) => {
      const given = continuationPoint?.toString() ?? "";
      const left = points.get(given);
      points.delete(given);
      if (releaseContinuationPoints) return new ua.HistoryReadResult({ statusCode: ua.StatusCodes.Good });
      if (given !== "" && !left)
        return new ua.HistoryReadResult({ statusCode: ua.StatusCodes.BadContinuationPointInvalid });
      const [from, to] = [details.startTime?.getTime() ?? 0, details.endTime?.getTime() ?? 0];
      const all = left ?? (recorded[Number(nodeId.value)] ?? []).filter((time) => time >= from && time < to);
      const most = Math.min(mostValues, details.numValuesPerNode);
      const rest = all.slice(most);
      if (rest.length > 0 && !mute && points.size >= mostPoints)
        return new ua.HistoryReadResult({ statusCode: ua.StatusCodes.BadNoContinuationPoints });
      const point = rest.length > 0 && !mute ? String(++nextPoint) : undefined;
      if (point) points.set(point, rest);
      return new ua.HistoryReadResult({
        statusCode: all.length === 0 ? ua.StatusCodes.GoodNoData : ua.StatusCodes.Good,
        historyData: new ua.HistoryData({
          dataValues: all.slice(0, most).map((time) => ({ sourceTimestamp: new Date(time) })),
        }),
        ...(point && { continuationPoint: Buffer.from(point) }),
      });
    });
    return new ua.HistoryReadResponse({ results });
  };
  const link = opcuaLink((request) => (request instanceof ua.HistoryReadRequest ? answer(request) : undefined));
  return { link, points, calls: () => calls };
}

const range = (node: number, from: number, to: number): HistoryRange & { readonly node: number } => ({
  node,
  nodeId: ua.makeNodeId(node, 1),
  from: epochMicros(from * 1_000),
  to: epochMicros(to * 1_000),
});
const signal = new AbortController().signal;

function read<R extends HistoryRange>(link: Link, ranges: readonly R[], limit = 100): AsyncGenerator<HistoryPage<R>> {
  const reading = { link, batch: new BatchSize(limit, 100), clock: { monotonic: () => 0, sleep: async () => {} } };
  return readHistory(reading, ranges, signal);
}

test("every recorded value of every gap is read, whatever the limits of the server", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        recorded: fc.array(
          fc
            .uniqueArray(fc.integer({ min: 1, max: 200_000 }), { maxLength: 60 })
            .map((times) => times.toSorted((a, b) => a - b)),
          { minLength: 1, maxLength: 12 },
        ),
        mostNodes: fc.integer({ min: 1, max: 12 }),
        mostPoints: fc.integer({ min: 1, max: 4 }),
        mostValues: fc.integer({ min: 1, max: 20 }),
        mute: fc.constant(false),
      }),
      fc.array(fc.tuple(fc.integer({ min: 0, max: 150_000 }), fc.integer({ min: 1, max: 50_000 })), {
        minLength: 12,
        maxLength: 12,
      }),
      async (plan, edges) => {
        const server = historian(plan);
        const ranges = plan.recorded.map((_, node) =>
          range(node, edges[node]?.[0] ?? 0, (edges[node]?.[0] ?? 0) + (edges[node]?.[1] ?? 1)),
        );
        const got = new Map<number, Set<number>>();
        const over: number[] = [];
        for await (const page of read(server.link, ranges)) {
          expect(page.error).toBeUndefined();
          const times = got.get(page.range.node) ?? new Set();
          got.set(page.range.node, times);
          for (const { sourceTimestamp } of page.values) times.add(sourceTimestamp?.getTime() ?? 0);
          if (page.over) over.push(page.range.node);
        }
        for (const { node, from, to } of ranges)
          for (const time of plan.recorded[node] ?? [])
            if (time * 1_000 > from && time * 1_000 < to) expect(got.get(node)).toContain(time);
        expect(over.toSorted((a, b) => a - b)).toEqual(ranges.map(({ node }) => node));
        expect(server.points.size).toBe(0);
      },
    ),
    runs(300),
  );
});

test("the gaps of a thousand nodes take ten calls, not a thousand", async () => {
  const recorded = Array.from({ length: 1_000 }, () => [1_000, 2_000, 3_000]);
  const server = historian({ recorded, mostNodes: 1_000, mostPoints: 1_000, mostValues: 1_000, mute: false });
  let values = 0;
  for await (const page of read(
    server.link,
    recorded.map((_, node) => range(node, 500 + node / 10, 4_000)),
  ))
    values += page.values.length;
  expect(values).toBe(3_000);
  expect(server.calls()).toBe(10);
});

test("a server that stops at the requested number is asked to continue", async () => {
  const times = Array.from({ length: 2_500 }, (_, i) => 1_000 + i);
  const server = historian({ recorded: [times], mostNodes: 1, mostPoints: 0, mostValues: 1_000, mute: true });
  const got = new Set<number>();
  for await (const { values } of read(server.link, [range(0, 500, 10_000)]))
    for (const { sourceTimestamp } of values) got.add(sourceTimestamp?.getTime() ?? 0);
  expect(got.size).toBe(2_500);
});

test("a reader that stops releases the continuation points", async () => {
  const times = Array.from({ length: 100 }, (_, i) => 1_000 + i);
  const server = historian({ recorded: [times, times], mostNodes: 2, mostPoints: 9, mostValues: 10, mute: false });
  for await (const { values } of read(server.link, [range(0, 500, 10_000), range(1, 500, 10_000)])) {
    expect(values).toHaveLength(10);
    break;
  }
  expect(server.points.size).toBe(0);
});

test("a server whose continuation points never end costs one range, not all later ones", async () => {
  let released = 0;
  const link = opcuaLink((request) => {
    if (!(request instanceof ua.HistoryReadRequest)) return undefined;
    const results = (request.nodesToRead ?? []).map(({ nodeId }) => {
      if (request.releaseContinuationPoints) released++;
      const dataValues = [{ sourceTimestamp: new Date(1_000) }];
      const continuationPoint = Buffer.from(nodeId.value === 0 ? "more" : "");
      return new ua.HistoryReadResult({ historyData: new ua.HistoryData({ dataValues }), continuationPoint });
    });
    return new ua.HistoryReadResponse({ results });
  });
  const ends: [number, string | undefined][] = [];
  for await (const page of read(link, [range(0, 500, 10_000), range(1, 500, 10_000)]))
    if (page.over) ends.push([page.range.node, page.error?.message]);
  expect(ends).toEqual([
    [1, undefined],
    [0, expect.stringContaining("continuation points")],
  ]);
  expect(released).toBe(1);
});

test.each(["sourceTimestamp", "serverTimestamp"] as const)(
  "a history of many pages is read to its end if its values have only a %s",
  async (name) => {
    const pages = 50;
    const link = opcuaLink((request) => {
      if (!(request instanceof ua.HistoryReadRequest)) return undefined;
      const results = (request.nodesToRead ?? []).map((node) => {
        const page = Number(node.continuationPoint?.toString() || 0);
        const dataValues = [{ [name]: new Date(1_000 + page) }];
        const continuationPoint = Buffer.from(page + 1 < pages ? String(page + 1) : "");
        return new ua.HistoryReadResult({ historyData: new ua.HistoryData({ dataValues }), continuationPoint });
      });
      return new ua.HistoryReadResponse({ results });
    });
    let values = 0;
    for await (const page of read(link, [range(0, 500, 10_000)])) {
      expect(page.error).toBeUndefined();
      values += page.values.length;
    }
    expect(values).toBe(pages);
  },
);
