// All states that a disk may have after the power failed at any call of a scripted run, and how the log opens each.
import { openStore } from "./disk-store.ts";
import { type Fault, MemoryDisk } from "./memory-disk.ts";
import { seeded } from "./runtime.ts";
import { emptyRun, problemAfterRestart, runScript, type ScriptRun } from "./storage-script.ts";

export interface CrashStatesOptions {
  /** Each number selects another script. */
  readonly variant: number;
  /** States per call: all if there are no more than this, otherwise this many at random. */
  readonly statesPerCall: number;
  /** A permanent fault of the disk. */
  readonly lie?: Fault;
  /** Fingerprints of the states that were opened. */
  readonly seen?: Set<string>;
  readonly stopAtFirst?: boolean;
}

export interface CrashStates {
  /** The number of different disk contents that were opened. */
  readonly states: number;
  /** Broken promises, each with the number of the call before which the power failed. Empty if there are none. */
  readonly wrong: readonly string[];
  /** The number of calls whose states were all tested, and of those whose states were sampled. */
  readonly inFull: number;
  readonly drawn: number;
}

class Enough extends Error {}

/**
 * Before every call, the power fails or the process is killed. Each state is opened and must hold what was promised.
 */
export function lookAtCrashStates(options: CrashStatesOptions): CrashStates {
  const { variant, statesPerCall, lie = () => undefined, seen = new Set(), stopAtFirst = false } = options;
  const disk = new MemoryDisk();
  const run = emptyRun();
  const random = seeded(variant);
  const checksums = new WeakMap<Uint8Array, number>();
  const before = seen.size;
  const checked = new Set<string>();
  const wrong: string[] = [];
  let [inFull, drawn] = [0, 0];

  const look = (after: MemoryDisk, end: "killed" | "powerCut") => {
    const content = after.fingerprint(checksums);
    seen.add(content);
    // The same content is another case if more was promised by then.
    const key = `${run.acknowledged.size} ${run.done.size} ${end === "killed" ? run.returned.size : ""} ${content}`;
    if (checked.has(key)) return;
    checked.add(key);
    const problem = problemOf(after, run, variant, end);
    if (problem === undefined) return;
    wrong.push(`variant ${variant}, before call ${disk.calls}: ${problem}`);
    if (stopAtFirst) throw new Enough();
  };
  disk.fault = (call, path) => {
    let choices = 0;
    disk.afterPowerCut(() => {
      choices++;
      return true;
    });
    const all = choices < 31 && 2 ** choices <= statesPerCall;
    if (all) inFull++;
    else drawn++;
    for (let i = 0; i < (all ? 2 ** choices : statesPerCall); i++) {
      let bit = 0;
      look(disk.afterPowerCut(all ? () => ((i >> bit++) & 1) === 1 : () => random() < 0.5), "powerCut");
    }
    look(disk.afterKill(), "killed");
    return lie(call, path);
  };
  try {
    runScript(disk, run, variant);
  } catch (error) {
    if (!(error instanceof Enough)) throw error;
  }
  return { states: seen.size - before, wrong, inFull, drawn };
}

/** Undefined if every promise was kept. */
function problemOf(disk: MemoryDisk, run: ScriptRun, variant: number, end: "killed" | "powerCut"): string | undefined {
  let unsealed = 0;
  disk.fault = (call, path) => {
    if (call === "setSize" && path.includes("/seg-")) unsealed++;
    return undefined;
  };
  const problem = problemAfterRestart(() => openStore(disk, { at: 1_000, seed: 77 }), run, end);
  if (problem !== undefined) return problem;
  // At a start, the segment being written is scanned in full. A second one is scanned if the earlier kill came before
  // the sync of a seal, which does not happen in the first script.
  return unsealed > (variant === 0 ? 1 : 2) ? `${unsealed} segments had no totals` : undefined;
}
