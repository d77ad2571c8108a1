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
];
