// The service as a sink. Each frame is one `integration.insert` call.
import { z } from "zod";
import type { InputId, SignalId } from "../../core/point.ts";
import type { Outcome, Refusal, Sink } from "../../core/sink.ts";
import { forEachInSlices } from "../../lib/flow/in-slices.ts";
import type { RpcErrorObject } from "../../wire/json-rpc.ts";
import type { ServiceOptions } from "./options.ts";
import { answerBytes, type RpcClient, repeatedResult } from "./rpc-client.ts";

/** Size of `"<input>":{"id":"<20 characters>","created":false},` without the Input ID, plus a reserve. */
export const summaryBytes = 160;

interface KnownSignals {
  /** Changes when the result of `hasId` may change for a known signal. */
  readonly revision: number;
  /** Whether `id` is the known signal of `input`. */
  hasId(input: InputId, id: SignalId): boolean;
}

export function serviceSink(
  client: RpcClient,
  confirmation: ServiceOptions["confirmation"],
  signals: KnownSignals,
): Sink {
  const last = new RepeatedAnswer();
  return {
    async send({ id, body, inputs }, signal, turn) {
      const maxAnswerBytes = inputs.reduce((bytes, input) => bytes + input.length + summaryBytes, answerBytes);
      const { revision } = signals;
      let answer: Buffer | undefined;
      const isRepeated = (candidate: Buffer) => {
        answer = candidate;
        return last.repeats(candidate, id, inputs, revision);
      };
      const outcome = await client.call({ id, body, maxAnswerBytes, isRepeated, turn }, signal);
      if (outcome.kind === "done") {
        if (outcome.result === repeatedResult) return { kind: "accepted", signals: new Map() };
        const found = await confirmed(outcome.result, inputs, confirmation, signals);
        if (answer && found.kind === "accepted" && found.signals.size === 0) last.keep(answer, id, inputs, revision);
        return found;
      }
      if (outcome.kind === "partly") return await partial(outcome.error, inputs);
      if (outcome.kind !== "refused") return outcome;
      const { kind, code, reason, faults } = outcome;
      const paths = faults.map(({ path }) => path);
      return { kind, code, reason, inputs: namedIn(paths, "data.series.", new Set(inputs)) };
    },
    connects: (signal) => client.connects(signal),
    async [Symbol.asyncDispose]() {},
  };
}

/** An input counts as stored if the result names it. Names outside the frame are ignored. */
async function confirmed(
  result: Readonly<Record<string, unknown>>,
  inputs: readonly InputId[],
  confirmation: ServiceOptions["confirmation"],
  known: KnownSignals,
): Promise<Outcome> {
  if (confirmation === "status" && isEmpty(result)) return { kind: "accepted", signals: new Map() };
  // Usually all inputs are named with known signals, so only exceptions are collected.
  const signals = new Map<InputId, SignalId>();
  const missing = new Set<InputId>();
  await forEachSignal(result, inputs, (input, id) => {
    if (id === undefined) missing.add(input);
    else if (!known.hasId(input, id)) signals.set(input, id);
  });
  if (missing.size === 0) return { kind: "accepted", signals };
  if (missing.size === inputs.length) return { kind: "unconfirmed" };
  return { kind: "partial", accepted: inputs.filter((input) => !missing.has(input)), refused: [] };
}

async function partial(error: RpcErrorObject, inputs: readonly InputId[]): Promise<Outcome> {
  const known = new Set(inputs);
  const signals = await signalsOf(error.data?.partialResult, inputs);
  const refused: Refusal[] = [];
  for (const { id, message, invalidFields } of error.data?.invalidResources ?? []) {
    const fields = Object.entries(invalidFields ?? {}).map(([path, texts]) => `${path}: ${texts.join(", ")}`);
    for (const input of namedIn(id === undefined ? [] : [id], "data.series.", known)) {
      refused.push({ input, reason: [`${message} (${error.code})`, ...fields].join("; ").slice(0, 500) });
    }
  }
  const bad = new Set(refused.map(({ input }) => input));
  const stored = inputs.filter((input) => signals.has(input) && !bad.has(input));
  return { kind: "partial", accepted: stored, refused };
}

/** Without a schema for the summaries, since there may be 20,000. */
const summarized = z.object({
  signalsByInput: z.custom<Readonly<Record<string, unknown>>>((value) => typeof value === "object" && value !== null),
});
/** Whether the result names no input at all. A result that names some inputs confirms only those. */
function isEmpty(result: Readonly<Record<string, unknown>>): boolean {
  const parsed = summarized.safeParse(result);
  return !parsed.success || Object.keys(parsed.data.signalsByInput).length === 0;
}

/** Cost of checking a summary, in points. */
const summaryWork = 20;

/** Signal IDs that the result contains for `inputs`. */
export async function signalsOf(result: unknown, inputs: readonly InputId[]): Promise<ReadonlyMap<InputId, SignalId>> {
  const ids = new Map<InputId, SignalId>();
  await forEachSignal(result, inputs, (input, id) => {
    if (id !== undefined) ids.set(input, id);
  });
  return ids;
}

/** Calls `each` for each of `inputs` with its Signal ID in the result, or undefined. */
async function forEachSignal(
  result: unknown,
  inputs: readonly InputId[],
  each: (input: InputId, id: SignalId | undefined) => void,
): Promise<void> {
  const parsed = summarized.safeParse(result);
  const signalsByInput = parsed.success ? parsed.data.signalsByInput : {};
  await forEachInSlices(
    inputs,
    () => summaryWork,
    (input) => each(input, Object.hasOwn(signalsByInput, input) ? idOf(signalsByInput[input]) : undefined),
  );
}

/** The service's Signal ID. Checked without a schema, since there are many. */
function idOf(summary: unknown): SignalId | undefined {
  if (typeof summary !== "object" || summary === null || !("id" in summary)) return undefined;
  const { id } = summary;
  return typeof id === "string" && id !== "" ? (id as SignalId) : undefined;
}

/** Inputs named by paths such as `data.series.boiler.temp.0`. IDs may contain dots: the longest known one counts. */
export function namedIn(paths: readonly string[], prefix: string, known: ReadonlySet<InputId>): InputId[] {
  const named = new Set<InputId>();
  for (const path of paths) {
    let rest = path.startsWith(prefix) ? path.slice(prefix.length) : path;
    for (;;) {
      // Used for a lookup only.
      const input = rest as InputId;
      if (known.has(input)) {
        named.add(input);
        break;
      }
      const dot = Math.max(rest.lastIndexOf("."), rest.lastIndexOf("["));
      if (dot <= 0) break;
      rest = rest.slice(0, dot);
    }
  }
  return [...named];
}

// Detects answers that repeat an earlier one. The service names each input of a request in its answer. While nothing
// changes, answers differ only in the request ID, and need not be parsed again.
//
//   {"jsonrpc":"2.0","id":1000000007,"result":{"signalsByInput":{…}}}
//                         └─ replaced ─┘   all other bytes must be equal
/** Largest cached answer. 10,000 inputs take about 600 kB. */
const mostBytes = 2 ** 20;
/** Requests for all inputs may alternate with requests for a few, each time others. */
const mostKept = 2;

interface Kept {
  readonly body: Buffer;
  readonly at: number;
  readonly digits: number;
  readonly inputs: readonly InputId[];
  readonly revision: number;
}

class RepeatedAnswer {
  /** Most recently used first. */
  #kept: readonly Kept[] = [];

  /** Whether `body` repeats a cached answer. `revision`: version of other state that affects the meaning. */
  repeats(body: Buffer, id: number, inputs: readonly InputId[], revision: number): boolean {
    const text = String(id);
    const repeated = this.#kept.find((kept) => {
      if (body.length !== kept.body.length || text.length !== kept.digits || revision !== kept.revision) return false;
      if (!sameInputs(inputs, kept.inputs)) return false;
      kept.body.write(text, kept.at, "latin1");
      return body.equals(kept.body);
    });
    if (repeated) this.#kept = [repeated, ...this.#kept.filter((kept) => kept !== repeated)];
    return repeated !== undefined;
  }

  /** Caches the answer to request `id`, which must contain that ID. `body` must not change afterwards. */
  keep(body: Buffer, id: number, inputs: readonly InputId[], revision: number): void {
    const text = String(id);
    const member = `"id":${text}`;
    const at = body.indexOf(member) + member.length - text.length;
    // The digits of the ID must not occur elsewhere with another meaning.
    if (body.length > mostBytes || !body.includes(member) || body.indexOf(text) !== body.lastIndexOf(text)) return;
    const others = this.#kept.filter((kept) => !sameInputs(kept.inputs, inputs));
    this.#kept = [{ body, at, digits: text.length, inputs, revision }, ...others].slice(0, mostKept);
  }
}

function sameInputs(some: readonly InputId[], others: readonly InputId[]): boolean {
  if (some === others) return true;
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}
