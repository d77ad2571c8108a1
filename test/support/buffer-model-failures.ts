// Event sequences in which the log once broke a promise, as found and shrunk by the model test. They are tried first.
import type { Step } from "./buffer-model.ts";

export const keptFailures: readonly [Step[]][] = [
  // After a kill, an unsynced write was sealed. A power cut then tore it, and it counted as damage.
  [
    [
      { kind: "cutOpening", call: 0, opening: 0, seed: 0 },
      { kind: "cutOpening", call: 1, opening: 25, seed: 523_706_401 },
      { kind: "settle", block: 0, inputs: undefined },
    ],
  ],
  // The power failed after a block of a dropped segment was settled. Its points were delivered, and also counted as
  // lost.
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
  // Late points were settled before the points that they replace. The model did not know that they have to wait.
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
