import fc from "fast-check";
import * as ua from "node-opcua-client";
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { BatchSize, inBatches, Services } from "../../../../src/source/opcua/session/services.ts";
import { opcuaLink } from "../../../support/opcua-link.ts";
import { runs } from "../../../support/property.ts";

test("results are in the order of the items, however few a server accepts in one call", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat(60),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 20 }),
      async (many, size, most) => {
        const items = Array.from({ length: many }, (_, i) => i);
        let refused = 0;
        const results = await inBatches(items, new BatchSize(size), async (part) => {
          for (let wait = part[0] ?? 0; wait > 0; wait -= 7) await Promise.resolve();
          if (part.length <= most) return part.map((item) => item * 2);
          refused++;
          throw new AgentError("SOURCE_UNREACHABLE", "Read: the server answers BadTooManyOperations");
        });
        expect(results).toEqual(items.map((item) => item * 2));
        // The limit is remembered: only calls already in flight are refused at each size.
        expect(refused).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(20)) + 2);
      },
    ),
    runs(300),
  );
});

test("a refusal for another reason, or at one operation, ends the call", async () => {
  const refusing = (status: string) =>
    inBatches([1, 2, 3], new BatchSize(0), () => Promise.reject(new AgentError("SOURCE_UNREACHABLE", status)));
  await expect(refusing("BadUserAccessDenied")).rejects.toThrow("BadUserAccessDenied");
  await expect(refusing("BadTooManyOperations")).rejects.toThrow("BadTooManyOperations");
  await expect(inBatches([1, 2], new BatchSize(0), async () => [1])).rejects.toThrow("1 results for 2 operations");
});

const never = new AbortController().signal;

test("a server that answers only the first values of a read is read in smaller calls", async () => {
  const calls: number[] = [];
  const link = opcuaLink((request) => {
    const nodes = request instanceof ua.ReadRequest ? (request.nodesToRead ?? []) : [];
    calls.push(nodes.length);
    const results = nodes.map(({ nodeId }) => ({ value: { dataType: ua.DataType.String, value: nodeId.toString() } }));
    return new ua.ReadResponse({ results: results.slice(0, 10) });
  });
  const services = new Services(link, { read: 0, browse: 0 });
  const nodes = Array.from({ length: 35 }, (_, i) => `ns=1;i=${i}`);
  const read = () =>
    services.read(
      nodes.map((nodeId) => ({ nodeId, attributeId: 13 })),
      never,
    );
  expect((await read()).map(({ value }) => value?.value)).toEqual(nodes);
  calls.length = 0;
  await read();
  expect(Math.max(...calls)).toBeLessThanOrEqual(10);
});

/**
 * A server that gives two references in a page and has `points` continuation points. Each node has the given number of
 * references. With `endless`, the last page leads back to the first.
 */
function browser(references: Readonly<Record<string, number>>, points: number, endless = false) {
  const held = new Map<string, { readonly node: string; readonly from: number }>();
  let nextPoint = 0;
  let pages = 0;
  const page = (node: string, from: number) => {
    pages++;
    const many = references[node] ?? 0;
    const to = Math.min(many, from + 2);
    const isLast = to === many && !endless;
    if (!isLast && held.size >= points) return { statusCode: ua.StatusCodes.BadNoContinuationPoints };
    const point = `${nextPoint++}`;
    if (!isLast) held.set(point, { node, from: to === many ? 0 : to });
    return {
      statusCode: ua.StatusCodes.Good,
      references: Array.from({ length: to - from }, (_, i) => ({
        nodeId: ua.coerceExpandedNodeId(`ns=1;s=${node}.${from + i}`),
        browseName: { name: `${from + i}` },
        referenceTypeId: "i=47",
      })),
      ...(!isLast && { continuationPoint: Buffer.from(point) }),
    };
  };
  const link = opcuaLink((request) => {
    if (request instanceof ua.BrowseRequest)
      return new ua.BrowseResponse({
        results: (request.nodesToBrowse ?? []).map(({ nodeId }) => page(String(nodeId.value), 0)),
      });
    if (!(request instanceof ua.BrowseNextRequest)) throw new TypeError("Browse only");
    const results = (request.continuationPoints ?? []).map((point) => {
      const { node, from } = held.get(String(point)) ?? { node: "", from: 0 };
      held.delete(String(point));
      return page(node, from);
    });
    return new ua.BrowseNextResponse({ results });
  });
  const services = new Services(link, { read: 0, browse: 0 });
  return {
    children: async () => {
      const found = await services.children(
        Object.keys(references).map((name) => `ns=1;s=${name}`),
        never,
      );
      return found.map((each) => each.map(({ name }) => name));
    },
    pages: () => pages,
  };
}

test("nodes for which a server has no more continuation points are browsed alone", async () => {
  const { children } = browser({ a: 5, b: 4, c: 1, d: 3 }, 1);
  expect(await children()).toEqual([["0", "1", "2", "3", "4"], ["0", "1", "2", "3"], ["0"], ["0", "1", "2"]]);
});

test("a browse whose continuation points lead back to its start ends", async () => {
  const { children, pages } = browser({ a: 5 }, 1, true);
  expect(await children()).toEqual([["0", "1", "2", "3", "4"]]);
  expect(pages()).toBeLessThan(50);
});
