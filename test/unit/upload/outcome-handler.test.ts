// How long the uploader waits after an answer, and in which order it records and settles a point.
import { expect, test, vi } from "vitest";
import { AgentError } from "../../../src/core/errors.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Outcome } from "../../../src/core/sink.ts";
import { type OutcomeHandlerParts, outcomeHandler } from "../../../src/upload/delivery/outcome-handler.ts";
import { Bisection } from "../../../src/upload/failures/bisection.ts";
import { FailureSearch } from "../../../src/upload/failures/failure-search.ts";
import { parkedInputs } from "../../../src/upload/failures/parked-inputs.ts";
import { PlannedColumns } from "../../../src/upload/packing/frame.ts";
import { type InFlightRequest, SubBatch } from "../../../src/upload/window/sub-batch.ts";
import { extractedColumn } from "../../support/packing.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const a = "a" as InputId;
const frame = { points: 1, body: Buffer.from("{}"), inputs: [a] };
// the only part that is used
const fresh = { kind: "fresh", frame, parts: PlannedColumns.all([]) } as unknown as InFlightRequest;
const accepted: Outcome = { kind: "accepted", signals: new Map() };
const unavailable: Outcome = { kind: "unavailable", cause: new AgentError("SERVICE_UNREACHABLE", "HTTP 503") };
const unauthorized: Outcome = { kind: "unauthorized", reason: "HTTP 401" };
const refused: Outcome = { kind: "refused", code: -32_602, reason: "no", inputs: [] };

function openStory(others: Partial<OutcomeHandlerParts> = {}) {
  const log: string[] = [];
  const clock = new ManualClock();
  const bisection = new Bisection();
  let written: () => void = () => {};
  const parts = {
    bisection,
    intervalMs: 1_000,
    window: { settleExtracted: () => log.push("settled"), forget: function* () {} },
    loader: { leadWithLive: () => log.push("live first") },
    prefetcher: { endOutage: () => {} },
    catalog: { learn: () => {} },
    rejects: {
      async add(points: readonly unknown[], kept: () => void) {
        log.push(`${points.length} to write`);
        written = kept;
      },
    },
    tally: { accepted: () => {}, failed: () => {}, trouble: () => {}, rejected: () => log.push("counted") },
    parked: { draining: () => [], named: () => {}, isAtFault: () => false },
    limit: { least: false, forget: () => {}, accepted: () => {} },
    search: new FailureSearch(clock),
    maxLagMs: 30_000,
    ...others,
  } as unknown as OutcomeHandlerParts; // the only parts that are used
  // The longest possible random waits.
  const handler = outcomeHandler(parts, { ...testRuntime({ clock }), random: () => 1 });
  const wait = async (outcome: Outcome) => (await handler.handle(fresh, outcome)).waitMs;
  return { handler, bisection, log, clock, wait, written: () => written() };
}

test.each([
  ["unavailable", unavailable, 2_000, 15_000],
  ["unauthorized", unauthorized, 10_000, 60_000],
] as const)("after %s the waits grow, and start again after the next accepted request", async (...row) => {
  const [, outcome, first, longest] = row;
  const { wait } = openStory();
  const waits: number[] = [];
  for (let i = 0; i < 10; i++) waits.push(await wait(outcome));
  expect([waits[0], waits.at(-1)]).toEqual([first, longest]);

  expect(await wait(accepted)).toBe(0);
  expect(await wait(outcome)).toBe(first);
});

test("points with an unknown outcome are sent again unchanged", async () => {
  const { handler } = openStory();
  for (const outcome of [unavailable, unauthorized, { kind: "throttled", retryAfterMs: 5_000 }] as const)
    expect((await handler.handle(fresh, outcome)).again).toBe(fresh);
  expect((await handler.handle(fresh, accepted)).again).toBeUndefined();
});

test("a part of a refused request and a retry wait as long as the service asks", async () => {
  const parked = parkedInputs(testRuntime());
  const window = { forgetInput: () => {}, forgetExtracted: () => {} } as unknown as OutcomeHandlerParts["window"];
  const asked: Outcome = { kind: "throttled", retryAfterMs: 30_000, isServerError: true };
  for (const kind of ["suspect", "probe"] as const) {
    const { handler, bisection } = openStory({ parks: true, parked, window });
    const two = () => Float64Array.of(1, 2);
    const subBatch = new SubBatch([extractedColumn(a, two(), two(), two())]);
    bisection.add(subBatch, []);
    bisection.next();
    const request = { kind, frame: { ...frame, points: 2 }, subBatch, rest: [] } as unknown as InFlightRequest;
    for (let i = 0; i < 6; i++) expect((await handler.handle(request, asked)).waitMs).toBe(30_000);
    expect(parked.has(a)).toBe(true);
  }
});

test("after an outage the newest points are sent first, after a short one the order is unchanged", async () => {
  const { wait, clock, log } = openStory();
  await wait(unavailable);
  await clock.advance(30_000);
  await wait(accepted);
  expect(log).toEqual([]);

  await wait(unavailable);
  await clock.advance(30_001);
  await wait(accepted);
  expect(log).toEqual(["live first"]);
});

test("a refused point is settled after it is written to the rejects file, and not before", async () => {
  const { handler, bisection, log, written } = openStory();
  const subBatch = new SubBatch([extractedColumn(a, Float64Array.of(1), Float64Array.of(13), Float64Array.of(0))]);
  bisection.add(subBatch, []);
  bisection.next();

  await handler.handle({ kind: "suspect", frame, subBatch } as unknown as InFlightRequest, refused);
  expect(log).toEqual(["1 to write"]);
  written();
  expect(log).toEqual(["1 to write", "counted", "settled"]);
});

function parkedStory() {
  const clock = new ManualClock();
  const parked = parkedInputs(testRuntime({ clock }));
  const window = { settle: () => {}, forget: function* () {}, forgetInput: () => {}, forgetExtracted: () => {} };
  const troubles: string[] = [];
  const tally = {
    accepted: () => {},
    failed: () => {},
    trouble: (...[, , text]: string[]) => troubles.push(text ?? ""),
  };
  const { handler } = openStory({ parked, parks: true, window, tally } as unknown as OutcomeHandlerParts);
  return { handler, parked, troubles };
}

test("an input omitted by an answer is parked only after three in a row", async () => {
  const { handler, parked } = parkedStory();
  const b = "b" as InputId;
  const parts = PlannedColumns.all([a, b].map((input) => ({ input, count: 1, read: () => true })));
  const both = { kind: "fresh", frame: { ...frame, inputs: [a, b] }, parts } as unknown as InFlightRequest;
  const leftOut: Outcome = { kind: "partial", accepted: [b], refused: [] };
  for (let i = 0; i < 5; i++) for (const outcome of [leftOut, leftOut, accepted]) await handler.handle(both, outcome);
  expect(parked.status().unconfirmed).toBe(0);

  for (let i = 0; i < 3; i++) await handler.handle(both, leftOut);
  expect(parked.status().first).toMatchObject([{ input: a, why: "unconfirmed" }]);
});

test("points of many inputs that one answer refuses are written down together", async () => {
  const written: (() => void)[] = [];
  const rejects = { add: () => new Promise<void>((resolve) => written.push(resolve)) };
  const parked = parkedInputs(testRuntime());
  const { handler } = openStory({ parked, parks: false, rejects } as unknown as OutcomeHandlerParts);
  const inputs = ["a", "b", "c"].map((input) => input as InputId);
  const one = Float64Array.of(1);
  const subBatch = new SubBatch(inputs.map((input) => extractedColumn(input, one, one, one)));
  const suspect = { kind: "suspect", frame: { ...frame, inputs }, subBatch } as unknown as InFlightRequest;
  const refused = inputs.map((input) => ({ input, reason: "no such unit" }));

  const handled = handler.handle(suspect, { kind: "partial", accepted: [], refused });
  await vi.waitFor(() => expect(written).toHaveLength(3));
  for (const resolve of written) resolve();
  await handled;
});

test("a failed retry of one input is not a delivery failure, and others do not wait for it", async () => {
  const { handler, parked, troubles } = parkedStory();
  parked.park(a, "refused", "no such unit");
  const subBatch = new SubBatch([extractedColumn(a, Float64Array.of(1), Float64Array.of(13), Float64Array.of(0))]);
  const probe = { kind: "probe", frame, subBatch, rest: [] } as unknown as InFlightRequest;
  const vain: Outcome = { kind: "partial", accepted: [], refused: [{ input: a, reason: "no such unit" }] };
  for (const outcome of [vain, { kind: "unconfirmed" }] as const)
    expect(await handler.handle(probe, outcome)).toEqual({ waitMs: 0, again: undefined });
  expect(troubles).toEqual([]);
  expect(parked.tries(a)).toBe(2);
});
