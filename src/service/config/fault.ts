// Faults on request, for drills and tests: what networks, proxies and overloaded services do, when and to which calls.
//
//   <kind>[=<value>][,method=<name>][,rate=<0 to 1>][,after=<calls>][,first=<calls>][,seed=<number>]
//
// `delay=2s,method=insert,rate=0.1,seed=7` delays every tenth insert or so, always the same ones.
import { parseDuration } from "../../lib/duration.ts";
import { type Method, methods } from "../../wire/method.ts";

/** What happens, and what a client sees of it. */
const faultKinds = {
  refuse: "the connection is closed before the call is run",
  delay: "the call waits so long before it is run: delay=2s",
  status: "the call is not run, the answer has this HTTP status: status=500",
  cutBefore: "the connection is cut before the call is run",
  cutAfter: "the connection is cut after the call was run, before its answer",
  garbage: "the call is run, the answer is no JSON",
  html: "the call is not run, the answer is a page of HTML, as of a captive portal",
  partial: "insert stores all but these Input IDs, and says so by -32021: partial=a+b",
  skew: "the clock of the service is off by so much: skew=-5m",
} as const;
export type FaultKind = keyof typeof faultKinds;

export interface Fault {
  readonly kind: FaultKind;
  /** Milliseconds of `delay` and `skew`, code of `status`. */
  readonly value: number;
  /** Of `partial`. */
  readonly inputs: readonly string[];
  /** Undefined: every method. */
  readonly method: Method | undefined;
  /** Share of the matching calls. */
  readonly rate: number;
  /** Matching calls that pass before it begins. */
  readonly after: number;
  /** Matching calls that it lasts for. */
  readonly first: number;
  readonly seed: number;
}

/** The fault that `text` describes, or what is wrong with it. */
export function parseFault(text: string): Fault | string {
  const [head = "", ...rest] = text.split(",").map((part) => part.trim());
  const [kind, value] = splitAt(head);
  if (!isKind(kind)) return `must begin with one of ${Object.keys(faultKinds).join(", ")}, not ${JSON.stringify(kind)}`;
  const options = new Map(rest.map(splitAt));
  for (const [name] of options)
    if (!["method", "rate", "after", "first", "seed"].includes(name)) return `does not know ${JSON.stringify(name)}`;
  const amount = valueOf(kind, value);
  if (amount === undefined) return `needs a value: ${faultKinds[kind]}`;
  const wanted = options.get("method")?.toLowerCase();
  const method = methods.find(
    (name) => wanted !== undefined && (name.toLowerCase() === wanted || name.toLowerCase().endsWith(`.${wanted}`)),
  );
  if (wanted !== undefined && !method) return `does not know the method ${JSON.stringify(wanted)}`;
  const number = (name: string, otherwise: number) => Number(options.get(name) ?? otherwise);
  const fault: Fault = {
    kind,
    value: amount,
    inputs: kind === "partial" ? (value ?? "").split("+").filter((input) => input !== "") : [],
    method,
    rate: number("rate", 1),
    after: number("after", 0),
    first: number("first", Number.POSITIVE_INFINITY),
    seed: number("seed", 1),
  };
  if (!(fault.rate >= 0 && fault.rate <= 1)) return "needs a rate from 0 to 1";
  if (!(fault.after >= 0 && fault.first >= 0 && Number.isSafeInteger(fault.seed)))
    return "needs whole numbers for after, first and seed";
  return fault;
}

/** Decides for one call after the other. The same faults and calls give the same decisions. */
export class FaultPlan {
  readonly #rows: readonly { readonly fault: Fault; readonly random: () => number; seen: number }[];

  constructor(faults: readonly Fault[]) {
    this.#rows = faults.map((fault) => ({ fault, random: seeded(fault.seed), seen: 0 }));
  }

  /** The faults that hit this call. */
  next(method: Method | undefined): readonly Fault[] {
    return this.#rows.flatMap((row) => {
      const { fault, random } = row;
      if (fault.method !== undefined && fault.method !== method) return [];
      const turn = row.seen++ - fault.after;
      // Drawn for every call, so that `after` and `first` do not move the others.
      const drawn = random() < fault.rate;
      return drawn && turn >= 0 && turn < fault.first ? [fault] : [];
    });
  }
}

function isKind(kind: string): kind is FaultKind {
  return Object.hasOwn(faultKinds, kind);
}

function splitAt(part: string): [string, string | undefined] {
  const at = part.indexOf("=");
  return at < 0 ? [part, undefined] : [part.slice(0, at), part.slice(at + 1)];
}

/** Undefined where the kind needs another value, or none. */
function valueOf(kind: FaultKind, value: string | undefined): number | undefined {
  if (kind === "delay" || kind === "skew") {
    const ms = parseDuration(value?.replace(/^-/, "") ?? "");
    return ms === undefined ? undefined : value?.startsWith("-") ? -ms : ms;
  }
  if (kind === "status") {
    const status = Number(value);
    return Number.isInteger(status) && status >= 200 && status <= 599 ? status : undefined;
  }
  const isRight = kind === "partial" ? value !== undefined && value !== "" : value === undefined;
  return isRight ? 0 : undefined;
}

/** Numbers from 0 to below 1 that repeat for the same seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
