// Which points of an input are sent when it is retried.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import type { Loader } from "../../../src/upload/delivery/loader.ts";
import { RetryProbes } from "../../../src/upload/delivery/retry-probes.ts";
import { parkedInputs } from "../../../src/upload/failures/parked-inputs.ts";
import type { Prefetcher } from "../../../src/upload/window/prefetcher.ts";
import type { InFlightRequest, SubBatch, SubBatchColumn } from "../../../src/upload/window/sub-batch.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { extractedColumn } from "../../support/packing.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";

const input = "a" as InputId;
const never = new AbortController().signal;

test("of points with the same time the first is retried first, so that the last one is stored last", async () => {
  const clock = new ManualClock();
  const parked = parkedInputs(testRuntime({ clock }));
  parked.park(input, "refused", "no");
  // After two vain retries, a random point is due instead of the oldest.
  for (let tries = 0; tries < 2; tries++) parked.triedInVain(input, "no");
  await clock.advance(300_000);
  const times = Float64Array.of(10, 20, 20, 30);
  const column = extractedColumn(input, times, Float64Array.of(1, 2, 3, 4), new Float64Array(4));
  const probes: { sent: number[]; rest: number[][] }[] = [];
  const loader = {
    probe: async (subBatch: SubBatch, rest: readonly SubBatchColumn[]) => {
      const sent = subBatch.columns.flatMap(({ values }) => [...values]);
      probes.push({ sent, rest: rest.map(({ values }) => [...values]) });
      return {} as InFlightRequest; // only passed on
    },
  } as unknown as Loader; // the only part that is used
  const prefetcher = { takeSingle: async () => column } as unknown as Prefetcher; // the only part that is used
  // Selects the third of the four points.
  const random = () => 1 / 3;

  await new RetryProbes({ prefetcher, loader, parked, window: new Window(1_000), random }).next(true, never);

  expect(probes).toEqual([{ sent: [2], rest: [[1], [3, 4]] }]);
});

test("an input is not retried while older points of it are being released to the buffer", async () => {
  const clock = new ManualClock();
  const parked = parkedInputs(testRuntime({ clock }));
  parked.park(input, "refused", "no");
  await clock.advance(300_000);
  const window = new Window(1_000);
  const series = [input, "b" as InputId].map((of) => ({
    input: of,
    times: Float64Array.of(10),
    values: Float64Array.of(1),
  }));
  window.add("backlog", Block.of(1 as BlockId, series), 0); // a BlockId as the buffer assigns it
  window.forgetInput(input);
  const taken: InputId[] = [];
  const takeSingle = async (of: InputId) => {
    taken.push(of);
    return undefined;
  };
  const prefetcher = { takeSingle } as unknown as Prefetcher; // the only part that is used
  const loader = {} as Loader; // nothing is sent
  const probes = new RetryProbes({ prefetcher, loader, parked, window, random: () => 0 });

  await probes.next(true, never);
  expect(taken).toEqual([]);

  for (const queue of window.queues("backlog")) if (queue.input !== input) window.settle(queue, 1);
  await clock.advance(300_000);
  await probes.next(true, never);
  expect(taken).toEqual([input]);
});
