// Saves new and changed metadata of the catalog at the service, in batches.
import { unreachable } from "../../core/errors.ts";
import type { InputId, SignalId } from "../../core/point.ts";
import { checkGridMs, type Runtime } from "../../core/runtime.ts";
import { inSlices, type Steps } from "../../lib/flow/in-slices.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import { signalSaveView } from "../../wire/signal-view.ts";
import { inputsMember, saveViewIn } from "../client/method-caller.ts";
import type { ServiceOptions } from "../client/options.ts";
import type { Pacer } from "../client/pacer.ts";
import { answerBytes, type Call, type CallOutcome, mostCuts } from "../client/rpc-client.ts";
import { signalsOf, summaryBytes } from "../client/service-sink.ts";
import { firstRequestId } from "../packing/frame.ts";
import type { Catalog } from "./catalog.ts";
import { mostRefusals, RefusedMetadata, reasonForAll, reasonsIn } from "./refused-metadata.ts";

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
  /** Number of requests with points that the service has accepted. */
  readonly acceptedRequests: () => number;
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
  readonly #refused: RefusedMetadata;
  /** Refusals since the search for their cause began. */
  #refusals = 0;
  #failures = 0;
  /** `acceptedRequests` at the last failure. */
  #accepted = 0;
  /** Consecutive calls that were cut off. */
  #cuts = 0;
  #nextId = firstRequestId;

  constructor(parts: SignalSyncParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: 15_000, random: runtime.random });
    this.#refused = new RefusedMetadata(parts.catalog, runtime);
  }

  /** Whether the points of `input` must wait until its metadata is saved, since they would create its signal. */
  holds(input: InputId): boolean {
    const { catalog } = this.#parts;
    const isInVain = this.#failures >= patience || this.#refusals >= mostRefusals;
    return !isInVain && catalog.pending.has(input) && !catalog.isSignal(input);
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
    this.#refused.retry();
    if (this.#suspects.length === 0) this.#refusals = 0;
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
        const resources = verdict.error.data?.invalidResources ?? [];
        const faults = resources.map(({ id = "", message }) => ({ path: id, text: message }));
        this.#refused.add(rest, reasonsIn(rest, faults));
        return ids.size > 0 ? this.#succeeded() : this.#failed(true);
      }
      case "refused":
        this.#bisect(batch, verdict);
        return this.#succeeded();
      case "tooLarge":
        if (batch.length > 1) this.#split(batch);
        else this.#refused.add(batch, reasonForAll(batch, "metadata are larger than the service takes"));
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
    if (this.#areAllRefused(batch, reason)) return this.#failed(true);
    if (batch.length > 1) {
      this.#split(batch);
      this.#failures++;
      return 0;
    }
    this.#refused.add(batch, reasonForAll(batch, reason), forbiddenMs);
    return this.#failed(true);
  }

  /** `batch` was refused without naming a signal. Ends a search in which everything is refused. */
  #areAllRefused(batch: readonly BatchedSignal[], reason: string): boolean {
    return this.#refused.areAll(() => [batch, ...this.#suspects.splice(0)].flat(), reason);
  }

  #succeeded(): number {
    this.#failures = 0;
    this.#cuts = 0;
    this.#backOff.reset();
    return 0;
  }

  #failed(answered: boolean): number {
    // If the service is unreachable, points cannot be sent either, so they may continue to wait.
    const accepted = this.#parts.acceptedRequests();
    if (answered || accepted > this.#accepted) this.#failures++;
    this.#accepted = accepted;
    return this.#backOff.next();
  }

  #saved(batch: readonly BatchedSignal[], ids: ReadonlyMap<InputId, SignalId>): void {
    if (batch.length > 0) this.#refused.reset();
    for (const { input, hash } of batch) this.#parts.catalog.markSaved(input, hash, ids.get(input));
    this.#parts.saved?.(batch.map(({ input }) => input));
  }

  /** Finds the bad signals of a refused batch, so that the others are saved. */
  #bisect(batch: readonly BatchedSignal[], { reason, faults }: Extract<CallOutcome, { kind: "refused" }>): void {
    this.#refusals++;
    const named = reasonsIn(batch, faults);
    if (batch.length > 1 && named.size === batch.length) this.#refused.add(batch, named);
    else if (named.size > 0 && batch.length > 1)
      this.#suspects.push(
        batch.filter(({ input }) => named.has(input)),
        batch.filter(({ input }) => !named.has(input)),
      );
    else if (this.#areAllRefused(batch, reason)) return;
    else if (batch.length > 1) this.#split(batch);
    else this.#refused.add(batch, reasonForAll(batch, reason));
  }

  #split(batch: readonly BatchedSignal[]): void {
    const half = batch.length >> 1;
    this.#suspects.push(batch.slice(half), batch.slice(0, half));
  }
}
