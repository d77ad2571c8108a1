// Injected faults for tests and drills: failures of networks, proxies and overloaded services, and the calls they hit.
//
//   <kind>[=<value>][,method=<name>][,rate=<0 to 1>][,after=<calls>][,first=<calls>][,seed=<number>]
//
// `delay=2s,method=insert,rate=0.1,seed=7` delays about every tenth insert, always the same ones.
import { parseDuration } from "../../lib/time/duration.ts";
import { type Method, methods } from "../../wire/method.ts";

/** Each kind with its effect. */
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
  /** Milliseconds for `delay` and `skew`, the code for `status`. */
  readonly value: number;
  /** The Input IDs of `partial`. */
  readonly inputs: readonly string[];
  /** Undefined: all methods. */
  readonly method: Method | undefined;
  /** Share of the matching calls. */
  readonly rate: number;
  /** Number of matching calls before the fault begins. */
  readonly after: number;
  /** Number of matching calls that the fault lasts. */
  readonly first: number;
  readonly seed: number;
}

/** The parsed fault, or an error message. */
export function parseFault(text: string): Fault | string {
  const [head = "", ...rest] = text.split(",").map((part) => part.trim());
  const [kind, value] = splitAt(head);
  if (!isKind(kind)) return `must begin with one of ${Object.keys(faultKinds).join(", ")}`;
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

/** Selects the faults of each call. The same faults and calls give the same selection. */
export class FaultPlan {
  readonly #rows: readonly { readonly fault: Fault; readonly random: () => number; seen: number }[];

  constructor(faults: readonly Fault[]) {
    this.#rows = faults.map((fault) => ({ fault, random: seeded(fault.seed), seen: 0 }));
  }

  next(method: Method | undefined): readonly Fault[] {
    return this.#rows.flatMap((row) => {
      const { fault, random } = row;
      if (fault.method !== undefined && fault.method !== method) return [];
      const turn = row.seen++ - fault.after;
      // Drawn for every call, so that `after` and `first` do not shift the sequence.
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

/** Undefined: the kind needs another value, or none. */
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

/** Repeatable numbers in [0, 1) for a seed (mulberry32). */
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
