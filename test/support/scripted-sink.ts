// A simulated service for the dispatcher, without a network: it stores by input and time, the last write wins, and it
// answers by a script.
import type { InputId, SignalId } from "../../src/core/point.ts";
import type { Clock } from "../../src/core/runtime.ts";
import type { Frame, Outcome, Sink } from "../../src/core/sink.ts";

/** The answer to one request. Inputs are bits of a mask, by their index in `SinkWorld.inputs`. */
export type Answer =
  | { readonly kind: "accept" }
  /** −32602 although the points are valid. `named`: the inputs that the answer names. */
  | { readonly kind: "refuse"; readonly named: number }
  /** −32021. All other inputs are accepted. Inputs in `unnamed` are stored, but the answer does not list them. */
  | { readonly kind: "partial"; readonly refused: number; readonly unnamed: number }
  /** `stored`: the frame is stored and the answer is lost; otherwise it answers 500. */
  | { readonly kind: "unavailable"; readonly stored: boolean }
  | { readonly kind: "throttled" }
  /** 413, whatever the size. */
  | { readonly kind: "tooLarge" }
  /** 401 or 403. */
  | { readonly kind: "unauthorized" };

/** The service always refuses frames with such a value. */
export const poisonFrom = 1e6;
/** While `fails` is set, the service answers 500 to frames with such a value. */
export const failingFrom = 2e6;

interface Data {
  readonly times: readonly string[];
  readonly series: Readonly<Record<InputId, readonly (number | null)[]>>;
}

export const keyOf = (input: string, micros: number) => `${input} ${micros}`;

export class SinkWorld {
  readonly inputs: readonly InputId[];
  /** `keyOf` → value. */
  readonly stored = new Map<string, number>();
  /** Answers to the next requests; afterwards all are accepted. */
  readonly script: Answer[] = [];
  /** True: no request is answered. `answering`: every request is answered with 500. */
  isUnmounted: boolean | "answering" = false;
  /** Whether it fails on values from `failingFrom` on. */
  fails = true;
  /** Larger requests are answered with 413. */
  mostBytes = Number.POSITIVE_INFINITY;
  /** The mask of the inputs that −32021 names, whatever the script contains. */
  forbidden = 0;
  requests = 0;
  readonly #latencyMs: number;

  constructor(inputs: readonly InputId[], latencyMs: number) {
    this.inputs = inputs;
    this.#latencyMs = latencyMs;
  }

  sink(clock: Clock): Sink {
    return {
      send: async (frame, signal) => {
        const outcome = this.#answer(frame);
        await clock.sleep(this.#latencyMs, signal);
        return outcome;
      },
      async [Symbol.asyncDispose]() {},
    };
  }

  #answer(frame: Frame): Outcome {
    this.requests++;
    // FrameWriter wrote it
    const { data } = (JSON.parse(Buffer.from(frame.body).toString()) as { params: { data: Data } }).params;
    if (this.isUnmounted !== false)
      return {
        kind: "unavailable",
        cause: new Error("the service is away"),
        isServerError: this.isUnmounted === "answering",
      };
    if (frame.body.length > this.mostBytes) return { kind: "tooLarge" };
    if (this.fails && hasValue(data, failingFrom))
      return { kind: "unavailable", cause: new Error("HTTP 500"), isServerError: true };
    const answer = this.#next();
    const all = this.inputs.filter((input) => input in data.series);
    const isIn = (mask: number) => (input: InputId) => (mask & (1 << this.inputs.indexOf(input))) !== 0;
    if (answer.kind === "unavailable") {
      if (answer.stored && !isPoisoned(data)) this.#store(data, all);
      return { kind: "unavailable", cause: new Error("no answer"), isServerError: !answer.stored };
    }
    if (answer.kind === "throttled") return { kind: "throttled", retryAfterMs: 700 };
    if (answer.kind === "tooLarge") return { kind: "tooLarge" };
    if (answer.kind === "unauthorized") return { kind: "unauthorized", reason: "HTTP 403" };
    if (isPoisoned(data)) return { kind: "refused", code: -32602, reason: "poison", inputs: [] };
    if (answer.kind === "refuse")
      return { kind: "refused", code: -32602, reason: "no reason", inputs: all.filter(isIn(answer.named)) };
    if (answer.kind === "partial") {
      const refused = all.filter(isIn(answer.refused));
      const taken = all.filter((input) => !refused.includes(input));
      this.#store(data, taken);
      const accepted = taken.filter((input) => !isIn(answer.unnamed)(input));
      if (accepted.length === 0 && refused.length === 0) return { kind: "unconfirmed" };
      if (accepted.length < all.length)
        return { kind: "partial", accepted, refused: refused.map((input) => ({ input, reason: "not now" })) };
    } else this.#store(data, all);
    // the service's format
    return { kind: "accepted", signals: new Map(all.map((input) => [input, "c".repeat(20) as SignalId])) };
  }

  #next(): Answer {
    const answer = this.script.shift() ?? { kind: "accept" };
    const { forbidden } = this;
    if (forbidden === 0) return answer;
    if (answer.kind === "accept") return { kind: "partial", refused: forbidden, unnamed: 0 };
    return answer.kind === "partial" ? { ...answer, refused: answer.refused | forbidden } : answer;
  }

  #store({ times, series }: Data, inputs: readonly InputId[]): void {
    for (const input of inputs)
      series[input]!.forEach((value, i) => {
        if (value !== null) this.stored.set(keyOf(input, microsOf(times[i]!)), value);
      });
  }
}

/** `Date` has a precision of milliseconds only. */
function microsOf(text: string): number {
  const [second = "", fraction = ""] = text.slice(0, -1).split(".");
  return Date.parse(`${second}Z`) * 1_000 + Number(fraction.padEnd(6, "0"));
}

function isPoisoned(data: Data): boolean {
  return hasValue(data, poisonFrom, failingFrom);
}

function hasValue({ series }: Data, from: number, to = Number.POSITIVE_INFINITY): boolean {
  return Object.values(series).some((values) => values.some((value) => value !== null && value >= from && value < to));
}
