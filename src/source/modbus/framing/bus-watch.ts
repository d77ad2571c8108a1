// Watches other traffic on a bus: replies that are sent twice by radio links and some gateways, and another master.
// Without ids, any reply with the same unit, function and length looks like the awaited answer. One watch serves all
// connections to a bus. Pure except for the clock.
//
//   repeated reply    request A --- reply A --- request B --- reply A --- reply B
//                     B waits for a gap after the last reply that could be mistaken for its answer.
//   another master    request A ------------- reply to X --- reply A
//                     An answer is held for `holdMs`. If two different ones come, neither is accepted.
//   its request       request X --- request A --- reply to X
//                     Until X is answered, no reply of its kind counts as an answer.
//   a kind of reply   that another master uses is avoided: see `distinct-replies`.
import type { Clock } from "../../../core/runtime.ts";
import type { SourceWarning } from "../../../core/source.ts";
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import {
  type DistinctRules,
  distinctReads,
  type Expected,
  expectedOf,
  kindOfReply,
  kindsOf,
} from "./distinct-replies.ts";

/** Twice the usual delay of a repeat on a radio link. The gap grows to 1.5 times the longest repeat seen. */
const shortestGapMs = 40;
const longestGapMs = 500;
/** Hold time for a unit that has not answered yet. */
const unknownHoldMs = 100;
/** Number of answers in a row, without other traffic, after which the bus counts as exclusive and nothing is held. */
const answersForTrust = 5_000;
/** Answers of each kind to confirm (see `LateReplyTracker.confirmation`). Most other masters are detected by then. */
const answersToConfirm = 32;
/** Number of unanswered confirmations in a row after which a unit or block is no longer confirmed. */
const mostUnconfirmed = 2;
/** How long the bus counts as disturbed after other traffic; answers are held longer meanwhile. */
const disturbedForMs = 600_000;
/** How long another master's request may await its answer. */
const foreignAnswerMs = 500;
/** Longest wait for a quiet line, as another master may never pause. */
const longestQuietMs = 300;
/** Within this time after a request timed out, an answer to it does not prove another master. */
const lateForMs = 10_000;
/** Answers kept to detect repeats. */
const mostRecent = 16;
/** Noise sometimes has a valid checksum. */
const fewestSigns = 3;

export interface Disturbance extends SourceWarning {
  readonly kind: "another master" | "repeated replies";
}

interface ReceivedReply {
  readonly unit: number;
  readonly pdu: Uint8Array;
  readonly at: number;
}

export class BusWatch {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #longestHoldMs: number;
  readonly #answersToConfirm: number;
  /** Kind → answers confirmed since another master last used it. */
  readonly #confirmed = new Map<string, number>();
  /** Unit or block → unanswered confirmations in a row. */
  readonly #unconfirmed = new Map<string, number>();
  /** Replies that may have answered a request of this agent, accepted or not. */
  #recent: ReceivedReply[] = [];
  readonly #lastOfKind = new Map<string, number>();
  /** Time of the last time-out of a request for each kind. */
  readonly #timedOutAt = new Map<string, number>();
  readonly #slowestMs = new Map<number, number>();
  #answers = 0;
  #signAt = Number.NEGATIVE_INFINITY;
  #foreignAt = Number.NEGATIVE_INFINITY;
  #foreignRequest: { readonly kinds: readonly string[]; readonly at: number } | undefined;
  #repeats = 0;
  #longestRepeatMs = 0;
  #foreign = 0;
  readonly #foreignUnits = new Set<number>();
  readonly #reads = distinctReads(disturbedForMs);

  /** `longestHoldMs`: limit for a bus without known disturbances. `toConfirm`: answers of each kind to confirm. */
  constructor(clock: Pick<Clock, "monotonic">, longestHoldMs: number, toConfirm = answersToConfirm) {
    this.#clock = clock;
    this.#answersToConfirm = toConfirm;
    this.#longestHoldMs = longestHoldMs;
  }

  get now(): number {
    return this.#clock.monotonic();
  }

  get repeating(): boolean {
    return this.#repeats >= fewestSigns;
  }

  timedOut(request: UnitRequest): void {
    for (const kind of kindsOf(request.unit, expectedOf(request))) this.#timedOutAt.set(kind, this.now);
  }

  /**
   * A reply was received, to a request of any master. `mayBeOurs`: it may answer a request of this agent, now or late.
   * `isUnsolicited`: it answers none, not even late.
   */
  received(unit: number, pdu: Uint8Array, mayBeOurs: boolean, isUnsolicited: boolean): void {
    const at = this.now;
    const kind = kindOfReply(unit, pdu);
    const timedOutAt = this.#timedOutAt.get(kind) ?? Number.NEGATIVE_INFINITY;
    if (isUnsolicited && at - timedOutAt >= lateForMs) this.#unsolicited({ unit, pdu, at }, kind);
    if (mayBeOurs) this.#recent = [...this.#recent.slice(1 - mostRecent), { unit, pdu, at }];
    this.#lastOfKind.set(kind, at);
    if (this.#foreignRequest?.kinds.includes(kind)) this.#foreignRequest = undefined;
  }

  /** Another master's request was received, to which `answer` is the reply. */
  request(unit: number, answer: Expected): void {
    const at = this.now;
    this.#sign(at);
    this.#foreigner(unit, at);
    const kinds = kindsOf(unit, answer);
    this.#foreignRequest = { kinds, at };
    this.#readsElsewhere(kinds[0] ?? "", at);
  }

  /** An answer was accepted `tookMs` after its request. */
  answered(unit: number, tookMs: number): void {
    this.#answers++;
    this.took(unit, tookMs);
  }

  /** A possible answer came `ms` after its request. */
  took(unit: number, ms: number): void {
    this.#slowestMs.set(unit, Math.max(ms, (this.#slowestMs.get(unit) ?? 0) * 0.999));
  }

  /** Monotonic time when `request` may be sent, which has waited since `since`; possibly in the past. */
  clearAt(request: UnitRequest, since = this.now): number {
    const kinds = kindsOf(request.unit, expectedOf(request));
    const last = Math.max(...kinds.map((kind) => this.#lastOfKind.get(kind) ?? Number.NEGATIVE_INFINITY));
    const isDisturbed = this.now - this.#signAt < disturbedForMs;
    const gap = Math.min(longestGapMs, Math.max(shortestGapMs, isDisturbed ? this.#longestRepeatMs * 1.5 : 0));
    const quietAt = Math.min(this.#foreignAt + gap, since + longestQuietMs);
    const isAwaited = this.awaited.some((kind) => kinds.includes(kind));
    return Math.max(last + gap, quietAt, isAwaited ? this.#foreignUntil : last);
  }

  /** Kinds of reply that another master awaits now. */
  get awaited(): readonly string[] {
    return this.now < this.#foreignUntil ? (this.#foreignRequest?.kinds ?? []) : [];
  }

  /** How long to hold an answer of `unit`, in case another one comes. 0 if the bus is exclusive. */
  holdMs(unit: number): number {
    if (this.#answers >= answersForTrust) return 0;
    const slowest = this.#slowestMs.get(unit);
    if (this.#isShared) return Math.min(Math.max(2 * (slowest ?? unknownHoldMs), unknownHoldMs), longestGapMs);
    return slowest === undefined ? unknownHoldMs : Math.min(Math.max(1.5 * slowest, 20), this.#longestHoldMs);
  }

  /** Whether another answer must confirm the answer to `request`. */
  needsConfirmation(request: ReadRequest): boolean {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    if (this.#answers >= answersForTrust || (this.#confirmed.get(kind) ?? 0) >= this.#answersToConfirm) return false;
    return placesOf(request).every((place) => (this.#unconfirmed.get(place) ?? 0) < mostUnconfirmed);
  }

  /** No reply contradicted the answer to `request`. `isAnswered`: the confirming request was answered, too. */
  confirmed(request: ReadRequest, isAnswered: boolean): void {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    if (isAnswered) this.#confirmed.set(kind, (this.#confirmed.get(kind) ?? 0) + 1);
    for (const place of placesOf(request))
      if (isAnswered) this.#unconfirmed.delete(place);
      else this.#unconfirmed.set(place, (this.#unconfirmed.get(place) ?? 0) + 1);
  }

  /** See `distinctReads`. */
  isForeign(request: ReadRequest): boolean {
    return this.#reads.isForeign(request, this.now);
  }

  /** See `distinctReads`; only while another master is active. */
  distinct(request: ReadRequest, rules: DistinctRules): ReadRequest | undefined {
    return this.#isShared ? this.#reads.choose(request, rules, this.now) : request;
  }

  /** See `distinctReads`; only while another master is active. */
  came(outcome: "read" | "refused" | "silent", sent: ReadRequest, request: ReadRequest): void {
    if (this.#isShared) this.#reads.came(outcome, sent, request, this.now);
  }

  /** Disturbances within the last ten minutes. */
  get disturbances(): readonly Disturbance[] {
    if (this.now - this.#signAt >= disturbedForMs) return [];
    const found: Disturbance[] = [];
    const indistinct = this.#reads.indistinct(this.now);
    const without = indistinct && `; without a value, since it reads each length that can be asked for: ${indistinct}`;
    const units = [...this.#foreignUnits].toSorted((a, b) => a - b).join(", ");
    if (this.#foreign >= fewestSigns)
      found.push({
        kind: "another master",
        message: `another master reads on this bus (units ${units}): replies that may be its own are discarded, and polls take longer${without}`,
        remedy: "let one master poll the bus, or separate the two with a gateway that keeps their requests apart",
      });
    if (this.repeating)
      found.push({
        kind: "repeated replies",
        message: `replies come twice, up to ${Math.ceil(this.#longestRepeatMs)} ms later: the repeats are discarded, and polls take longer`,
        remedy: "look for the radio link, repeater or gateway that sends frames twice",
      });
    return found;
  }

  get #foreignUntil(): number {
    return (this.#foreignRequest?.at ?? Number.NEGATIVE_INFINITY) + foreignAnswerMs;
  }

  get #isShared(): boolean {
    return this.now - this.#foreignAt < disturbedForMs;
  }

  #unsolicited({ unit, pdu, at }: ReceivedReply, kind: string): void {
    this.#sign(at);
    const isSame = (each: ReceivedReply) => each.unit === unit && equal(each.pdu, pdu) && at - each.at < longestGapMs;
    // Two masters with the same request get the same reply.
    const first = this.awaited.includes(kind) ? undefined : this.#recent.findLast(isSame);
    if (first) {
      this.#repeats++;
      this.#longestRepeatMs = Math.max(this.#longestRepeatMs, at - first.at);
    } else {
      this.#foreigner(unit, at);
      this.#readsElsewhere(kind, at);
    }
  }

  #sign(at: number): void {
    if (at - this.#signAt >= disturbedForMs) {
      this.#repeats = 0;
      this.#longestRepeatMs = 0;
      this.#foreign = 0;
      this.#foreignUnits.clear();
    }
    this.#answers = 0;
    this.#signAt = at;
  }

  /** Records that another master uses replies of `kind`. */
  #readsElsewhere(kind: string, at: number): void {
    this.#reads.foreign(kind, at);
    this.#confirmed.delete(kind);
  }

  #foreigner(unit: number, at: number): void {
    this.#foreign++;
    this.#foreignAt = at;
    this.#foreignUnits.add(unit);
  }
}

/** Keys of the unit and of the block. */
function placesOf({ unit, table, start, count }: ReadRequest): readonly string[] {
  return [`${unit}`, `${unit} ${table}:${start} (${count})`];
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
