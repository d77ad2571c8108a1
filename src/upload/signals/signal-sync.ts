// Saves new and changed metadata of the catalog at the service, in batches.
import type { InputId, SignalId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import { unreachable } from "../../core/unreachable.ts";
import { BackOff } from "../../lib/flow/back-off.ts";
import { inSlices, type Steps } from "../../lib/flow/in-slices.ts";
import { signalSaveView } from "../../wire/signal-view.ts";
import { inputsMember, saveViewIn } from "../client/method-caller.ts";
import type { ServiceOptions } from "../client/options.ts";
import type { Pacer } from "../client/pacer.ts";
import { answerBytes, type Call, type CallOutcome, mostCuts } from "../client/rpc-client.ts";
import { namedIn, signalsOf, summaryBytes } from "../client/service-sink.ts";
import { firstRequestId } from "../packing/frame.ts";
import type { Catalog } from "./catalog.ts";

export interface SignalSyncParts {
  readonly options: ServiceOptions;
  readonly catalog: Catalog;
  readonly pacer: Pacer;
  readonly maxBytes: number;
  readonly call: (call: Call, signal: AbortSignal) => Promise<CallOutcome>;
  /** Receives outcomes that do not concern single signals, and the first success after one. */
  readonly report: (verdict: CallOutcome) => void;
  /** Called with the inputs whose metadata was saved. */
  readonly saved?: (inputs: readonly InputId[]) => void;
}

interface BatchedSignal {
  readonly input: InputId;
  readonly hash: string;
  /** `"input":{…}` */
  readonly json: string;
}

/** Limits the size of answers: 10,000 signals make 3 MB at most. */
const mostPerRequest = 10_000;
/** Cost of checking and encoding the metadata of a signal, in points. */
const signalWork = 2_500;
const pollMs = 1_000;
/** Failures before points are sent without metadata. The service then creates the signals itself. */
const patience = 3;
/** Wait before a call that was not permitted is repeated. */
const forbiddenMs = 60_000;

export class SignalSync {
  readonly #parts: SignalSyncParts;
  readonly #runtime: Runtime;
  readonly #backOff: BackOff;
  /** Parts of refused batches, and batches to repeat. */
  #suspects: (readonly BatchedSignal[])[] = [];
  /** Ordered by `dueMs`. */
  #notPermitted: { readonly input: InputId; readonly dueMs: number }[] = [];
  #failures = 0;
  /** Consecutive calls that were cut off. */
  #cuts = 0;
  #nextId = firstRequestId;

  constructor(parts: SignalSyncParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: 15_000, random: runtime.random });
  }

  /** Whether the points of `input` must wait until its metadata is saved. */
  holds(input: InputId): boolean {
    return this.#failures < patience && this.#parts.catalog.pending.has(input);
  }

  /** Saves pending metadata until `signal` aborts, then resolves. `grace` aborts the current call. */
  async run(signal: AbortSignal, grace: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    while (!signal.aborted) {
      try {
        const waitMs = await this.#saveNext(signal, grace);
        if (waitMs > 0) await clock.sleep(waitMs, signal, waitMs === pollMs ? checkGridMs : undefined);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }

  /** Saves one batch; returns milliseconds to wait. A separate method, so that a wait does not retain 30 MB. */
  async #saveNext(signal: AbortSignal, grace: AbortSignal): Promise<number> {
    const { pacer, catalog } = this.#parts;
    this.#retryForbidden();
    const batch = this.#suspects.pop() ?? (await inSlices(this.#nextBatch()));
    if (batch.length === 0) return pollMs;
    const body = Buffer.from(this.#body(batch.map(({ json }) => json).join(",")), "utf8");
    const maxAnswerBytes = batch.reduce((bytes, { input }) => bytes + input.length + summaryBytes, answerBytes);
    const call = { id: this.#nextId++, body, maxAnswerBytes };
    const verdict = await pacer.run((turn) => this.#parts.call({ ...call, turn }, grace), signal);
    const waitMs = await this.#decide(batch, verdict);
    if (catalog.pending.size === 0) this.#suspects = [];
    return waitMs;
  }

  /** As many pending signals as fit into a request. Marks those that fit into none as refused. */
  *#nextBatch(): Steps<BatchedSignal[]> {
    const { catalog, maxBytes, options } = this.#parts;
    const room = maxBytes - Buffer.byteLength(this.#body(""));
    const batch: BatchedSignal[] = [];
    let bytes = 0;
    for (const input of Array.from(catalog.pending)) {
      yield signalWork;
      const { hash, signal } = catalog.entry(input) ?? {};
      if (hash === undefined || signal === undefined) continue;
      const view = signalSaveView.safeParse({ ...signal, name: signal.name ?? input });
      if (!view.success) {
        const [issue] = view.error.issues;
        const reason = `${issue?.path.join(".") ?? "metadata"} ${issue?.message ?? "is invalid"}`;
        catalog.markRefused(input, hash, reason);
        continue;
      }
      const json = `${JSON.stringify(input)}:${JSON.stringify(saveViewIn(options.apiVersion, view.data))}`;
      const size = Buffer.byteLength(json) + 1;
      if (bytes + size > room && batch.length > 0) break;
      if (size > room) {
        catalog.markRefused(input, hash, `metadata of ${size} bytes are larger than a request may be`);
        continue;
      }
      bytes += size;
      batch.push({ input, hash, json });
      if (batch.length === mostPerRequest) break;
    }
    return batch;
  }

  #body(inputs: string): string {
    const { integration, apiVersion, signals } = this.#parts.options;
    return `{"jsonrpc":"2.0","method":"integration.saveSignals","id":${this.#nextId},"params":{"integration":"${integration}","${inputsMember(apiVersion)}":{${inputs}},"createOnly":${signals.createOnly}}}`;
  }

  /** Returns milliseconds to wait before the next call. */
  async #decide(batch: readonly BatchedSignal[], verdict: CallOutcome): Promise<number> {
    const { report } = this.#parts;
    const inputs = batch.map(({ input }) => input);
    switch (verdict.kind) {
      case "done":
        this.#saved(batch, await signalsOf(verdict.result, inputs));
        report(verdict);
        return this.#succeeded();
      case "partly": {
        const ids = await signalsOf(verdict.error.data?.partialResult, inputs);
        const saved = batch.filter(({ input }) => ids.has(input));
        const rest = batch.filter(({ input }) => !ids.has(input));
        this.#saved(saved, ids);
        const known = new Set(rest.map(({ input }) => input));
        for (const { id = "", message } of verdict.error.data?.invalidResources ?? [])
          for (const input of namedIn([id], "inputs.", known)) this.#refused(rest, input, message);
        return ids.size > 0 ? this.#succeeded() : this.#failed(true);
      }
      case "refused":
        this.#bisect(batch, verdict.reason, verdict.paths);
        return this.#succeeded();
      case "tooLarge":
        if (batch.length > 1) this.#split(batch);
        else if (batch[0]) this.#refused(batch, batch[0].input, "metadata are larger than the service takes");
        return 0;
      case "throttled":
        if (verdict.retryAfterMs > 0) report(verdict);
        this.#suspects.push(batch);
        return verdict.retryAfterMs;
      case "unauthorized":
        report(verdict);
        if (verdict.answered) return this.#forbidden(batch, verdict.reason);
        this.#suspects.push(batch);
        return this.#failed(false);
      case "unavailable":
        report(verdict);
        if (verdict.isCut && batch.length > 1 && ++this.#cuts >= mostCuts) this.#split(batch);
        else this.#suspects.push(batch);
        return this.#failed(verdict.answered);
      default:
        return unreachable(verdict);
    }
  }

  /** Perhaps only some signals are forbidden, so the batch is split. Points are sent meanwhile. */
  #forbidden(batch: readonly BatchedSignal[], reason: string): number {
    if (batch.length > 1) {
      this.#split(batch);
      this.#failures++;
      return 0;
    }
    const dueMs = this.#runtime.clock.monotonic() + forbiddenMs;
    for (const { input } of batch) {
      this.#refused(batch, input, reason);
      this.#notPermitted.push({ input, dueMs });
    }
    return this.#failed(true);
  }

  /** Repeats forbidden calls, since an operator may have granted the permission. */
  #retryForbidden(): void {
    const { catalog } = this.#parts;
    const now = this.#runtime.clock.monotonic();
    while (this.#notPermitted[0] && this.#notPermitted[0].dueMs <= now) {
      const { input } = this.#notPermitted.shift() ?? {};
      if (input !== undefined && catalog.refused.has(input)) catalog.markSaved(input, undefined, undefined);
    }
  }

  #succeeded(): number {
    this.#failures = 0;
    this.#cuts = 0;
    this.#backOff.reset();
    return 0;
  }

  #failed(answered: boolean): number {
    // If the service is unreachable, points cannot be sent either, so they may continue to wait.
    if (answered) this.#failures++;
    return this.#backOff.next();
  }

  #saved(batch: readonly BatchedSignal[], ids: ReadonlyMap<InputId, SignalId>): void {
    for (const { input, hash } of batch) this.#parts.catalog.markSaved(input, hash, ids.get(input));
    this.#parts.saved?.(batch.map(({ input }) => input));
  }

  #refused(batch: readonly BatchedSignal[], input: InputId, reason: string): void {
    const signal = batch.find((each) => each.input === input);
    if (!signal) return;
    this.#parts.catalog.markRefused(input, signal.hash, reason);
    this.#runtime.log.warn(
      { input, reason },
      "the service refuses the metadata of a signal, its points are sent all the same",
    );
  }

  /** Finds the bad signal of a refused batch, so that the others are saved. */
  #bisect(batch: readonly BatchedSignal[], reason: string, paths: readonly string[]): void {
    const [first] = batch;
    if (batch.length === 1 && first) {
      this.#refused(batch, first.input, reason);
      return;
    }
    const known = new Set(batch.map(({ input }) => input));
    const prefixes = ["inputs.", "signalsByInput.", "params.inputs."];
    const named = new Set(prefixes.flatMap((prefix) => namedIn(paths, prefix, known)));
    if (named.size === 0 || named.size === batch.length) {
      this.#split(batch);
      return;
    }
    for (const signal of batch) if (named.has(signal.input)) this.#suspects.push([signal]);
    this.#suspects.push(batch.filter(({ input }) => !named.has(input)));
  }

  #split(batch: readonly BatchedSignal[]): void {
    const half = batch.length >> 1;
    this.#suspects.push(batch.slice(half), batch.slice(0, half));
  }
}
