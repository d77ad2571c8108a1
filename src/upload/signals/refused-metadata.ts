// Metadata that the service refuses: shown with the reason, and tried again where the refusal may end by itself.
import type { InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import type { RequestFault } from "../client/rpc-client.ts";
import { namedIn } from "../client/service-sink.ts";
import type { Catalog } from "./catalog.ts";

interface Signal {
  readonly input: InputId;
  readonly hash: string;
}

/** More refusals than the search for one signal among 10,000 takes: one for each halving. */
export const mostRefusals = 25;
/** Pause of a search in which the service refuses everything. */
const pause = { minMs: 60_000, maxMs: 600_000 } as const;
const mostLogged = 10;

export class RefusedMetadata {
  readonly #catalog: Catalog;
  readonly #runtime: Runtime;
  readonly #pause: BackOff;
  /** Signals to be tried again, and when, in monotonic milliseconds. */
  #again: { readonly input: InputId; readonly dueMs: number }[] = [];
  /** Refusals since metadata were last saved, in which the service named no signal. */
  #inARow = 0;

  constructor(catalog: Catalog, runtime: Runtime) {
    this.#catalog = catalog;
    this.#runtime = runtime;
    this.#pause = new BackOff({ ...pause, random: runtime.random });
  }

  /** Marks the signals that have a reason as refused. `againMs`: tries them again. Undefined: once they change. */
  add(signals: readonly Signal[], reasons: ReadonlyMap<InputId, string>, againMs?: number): void {
    const { clock, log } = this.#runtime;
    const refused = signals.filter(({ input }) => reasons.has(input));
    const [first] = refused;
    if (!first) return;
    for (const { input, hash } of refused) {
      this.#catalog.markRefused(input, hash, reasons.get(input) ?? "");
      if (againMs !== undefined) this.#again.push({ input, dueMs: clock.monotonic() + againMs });
    }
    const inputs = refused.slice(0, mostLogged).map(({ input }) => input);
    log.warn(
      { inputs, count: refused.length, reason: reasons.get(first.input) },
      "the service refuses the metadata of some signals, their points are sent all the same",
    );
  }

  /**
   * Counts a refusal without names. After many in a row, single signals are not the cause. Then `signals` are refused for
   * a while, so that other metadata are saved, and it returns true.
   */
  areAll(signals: () => readonly Signal[], reason: string): boolean {
    if (++this.#inARow < mostRefusals) return false;
    this.#inARow = 0;
    const all = signals();
    this.add(all, reasonForAll(all, reason), this.#pause.next());
    return true;
  }

  /** Metadata were saved. */
  reset(): void {
    this.#inARow = 0;
    this.#pause.reset();
  }

  /**
   * Makes signals pending that are due, since an operator may have granted a permission or corrected the service. In
   * random order: the search for the refused ones ends early, and would otherwise reach the same signals each time.
   */
  retry(): void {
    const { clock, random } = this.#runtime;
    const now = clock.monotonic();
    const due = this.#again.filter(({ dueMs }) => dueMs <= now);
    if (due.length === 0) return;
    this.#again = this.#again.filter(({ dueMs }) => dueMs > now);
    for (const { input } of shuffled(due, random))
      if (this.#catalog.refused.has(input)) this.#catalog.markSaved(input, undefined, undefined);
  }
}

function shuffled<T>(all: readonly T[], random: () => number): T[] {
  const ranked = all.map((each) => ({ each, rank: random() }));
  return ranked.sort((a, b) => a.rank - b.rank).map(({ each }) => each);
}

export function reasonForAll(signals: readonly Signal[], reason: string): ReadonlyMap<InputId, string> {
  return new Map(signals.map(({ input }) => [input, reason]));
}

/** The reason for each of the signals that `faults` name. */
export function reasonsIn(signals: readonly Signal[], faults: readonly RequestFault[]): ReadonlyMap<InputId, string> {
  const known = new Set(signals.map(({ input }) => input));
  const reasons = new Map<InputId, string>();
  for (const { path, text } of faults)
    for (const prefix of ["inputs.", "signalsByInput.", "params.inputs."])
      for (const input of namedIn([path], prefix, known)) reasons.set(input, text);
  return reasons;
}
