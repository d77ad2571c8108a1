// Orders of events in which the log once broke a promise, as the model test found and shrank them. They are tried first.
import type { Step } from "./buffer-model.ts";

export const keptFailures: readonly [Step[]][] = [
  // A write that was there after a kill was sealed before it was synced: torn by a power cut, it was taken for damage.
  [
    [
      { kind: "cutOpening", call: 0, opening: 0, seed: 0 },
      { kind: "cutOpening", call: 1, opening: 25, seed: 523_706_401 },
      { kind: "settle", block: 0, inputs: undefined },
    ],
  ],
  // The power failed after a block of a dropped segment was settled: its points were delivered, and counted as lost.
  [
    [
      { kind: "append", points: 15, inputs: 3 },
      { kind: "close" },
      { kind: "killDuring", call: 11 },
      { kind: "cut", seed: 0 },
      { kind: "take", lane: "backlog", max: 10, input: undefined, except: 0 },
      { kind: "append", points: 1, inputs: 1 },
      { kind: "settle", block: 0, inputs: undefined },
    ],
  ],
  // Late points were settled before the points that they replace, and the model did not know that they wait for those.
  [
    [
      { kind: "append", points: 1, inputs: 1 },
      { kind: "killDuring", call: 1 },
      { kind: "take", lane: "live", max: 9, input: undefined, except: 1 },
      { kind: "take", lane: "backlog", max: 1, input: undefined, except: 1 },
      { kind: "settle", block: 3, inputs: undefined },
      { kind: "settle", block: 0, inputs: undefined },
      { kind: "cutOpening", call: 0, opening: 0, seed: 0 },
    ],
  ],
];
