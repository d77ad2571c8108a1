// The heap that leased points take.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import type { InputId } from "../../../../src/core/point.ts";
import { openStore } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

test("leased points do not fill the heap, also when every block has one point of each series", () => {
  const { store } = openStore(new MemoryDisk(), { segmentBytes: 2 ** 22 });
  const inputs = Uint32Array.from({ length: 8_000 }, (_, i) => store.inputs.numberOf(`tag${i}` as InputId));
  let polls = 0;
  const poll = () => {
    const times = new Float64Array(inputs.length).fill(1_767_225_600e6 + polls++ * 1e6);
    const group = { inputs: inputs.slice(), times, values: times.slice(), count: inputs.length };
    store.append(group, { wall: times[0]!, monotonic: polls * 1_000 });
  };
  // Takes part of a record, as the uploader does at first. A partly leased record is tracked by series.
  poll();
  store.take({ lane: "live", maxPoints: 5_000 });
  store.take({ lane: "backlog", maxPoints: 100_000 });

  const before = polls * inputs.length;
  for (let i = 0; i < 25; i++) {
    poll();
    store.take({ lane: "backlog", maxPoints: 100_000 });
  }
  const points = polls * inputs.length - before;
  const held = heap();
  store.releaseAll();

  expect(store.take({ lane: "live", maxPoints: 100_000 }).block?.inputs).toHaveLength(8_000);
  expect((held - heap()) / points).toBeLessThan(40);
});

/** Bytes in use, without columns, which are outside the heap. */
function heap(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void; // exposed by --expose-gc
  // A second collection frees what the first one has released.
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}
