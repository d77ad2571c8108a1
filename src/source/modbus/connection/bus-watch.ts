// What else is heard on a bus: replies that come twice, as over radio links and some transparent gateways, and the exchanges
// of another master. Frames have no id there, so that a reply to anything with the same unit, function and length looks like
// the answer to our request. One watch serves all connections to a bus. Pure, but for the clock.
//
//   repeated reply    request A --- reply A --- request B --- reply A --- reply B
//                     B is not sent before a gap after the last reply that could be taken for its answer.
//   another master    request A ------------- reply to X --- reply A
//                     An answer is held for `holdMs`: where two different ones come, neither is taken.
//   its request       request X --- request A --- reply to X
//                     is heard on a line: until X is answered nothing of its kind is an answer of ours.
//   a kind of reply   that was heard for another master is avoided: see `distinct-reads`.
import type { Clock } from "../../../core/runtime.ts";
import type { SourceWarning } from "../../../core/source.ts";
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import { DistinctReads, type DistinctRules } from "./distinct-reads.ts";
import type { Expected } from "./doubts.ts";
import { expectedOf, kindOfReply, kindsOf } from "./doubts.ts";

/** Twice what a radio link commonly takes to repeat a reply. Grows to half as much again as the longest repeat seen. */
const shortestGapMs = 40;
const longestGapMs = 500;
/** For a unit that has not answered yet. */
const unknownHoldMs = 100;
/** A bus on which so many answers came in a row, and nothing else, is ours alone: answers are not held any more. */
const answersForTrust = 5_000;
/** Of each kind so many answers are confirmed by another one: see `Doubts.confirmation`. Until then most other masters are heard. */
const answersToConfirm = 32;
/** A unit that does not answer that so often in a row is not asked for it any more, nor is a block for which it does not. */
const mostUnconfirmed = 2;
/** After a sign of other traffic the bus counts as disturbed for so long, and answers are held longer. */
const disturbedForMs = 600_000;
/** How long an answer to another master's request is waited for. */
const foreignAnswerMs = 500;
/** So long it is waited for that the line falls quiet: another master may never rest. */
const longestQuietMs = 300;
/** Within this time after a request timed out, an answer to it does not prove another master. */
const lateForMs = 10_000;
/** Answers kept to recognise repeats by. */
const mostRecent = 16;
/** Noise has a right checksum now and then. */
const fewestSigns = 3;

export interface Disturbance extends SourceWarning {
  readonly kind: "another master" | "repeated replies";
}

interface Heard {
  readonly unit: number;
  readonly pdu: Uint8Array;
  readonly at: number;
}

export class BusWatch {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #longestHoldMs: number;
  readonly #answersToConfirm: number;
  /** By kind: answers that were confirmed since it was last heard for another master. */
  readonly #confirmed = new Map<string, number>();
  /** By unit, and by block: how often in a row what would have confirmed was not answered. */
  readonly #unconfirmed = new Map<string, number>();
  /** Replies that may have answered a request of this agent, accepted or not. */
  #recent: Heard[] = [];
  /** When a reply of that kind was heard last. */
  readonly #lastOfKind = new Map<string, number>();
  /** When a request with an answer of that kind last timed out. */
  readonly #gaveUpAt = new Map<string, number>();
  /** Slowest answer of late, by unit. */
  readonly #slowestMs = new Map<number, number>();
  #answers = 0;
  #signAt = Number.NEGATIVE_INFINITY;
  #foreignAt = Number.NEGATIVE_INFINITY;
  #foreignRequest: { readonly kinds: readonly string[]; readonly at: number } | undefined;
  #repeats = 0;
  #longestRepeatMs = 0;
  #foreign = 0;
  readonly #foreignUnits = new Set<number>();
  readonly #reads = new DistinctReads(disturbedForMs);

  /** `longestHoldMs`: for an answer on a bus that is not known to be disturbed. `toConfirm`: answers of each kind that are confirmed by another one. */
  constructor(clock: Pick<Clock, "monotonic">, longestHoldMs: number, toConfirm = answersToConfirm) {
    this.#clock = clock;
    this.#answersToConfirm = toConfirm;
    this.#longestHoldMs = longestHoldMs;
  }

  get now(): number {
    return this.#clock.monotonic();
  }

  /** Whether replies are known to come twice. */
  get repeating(): boolean {
    return this.#repeats >= fewestSigns;
  }

  /** The answer to `request` did not come in time. */
  gaveUp(request: UnitRequest): void {
    for (const kind of kindsOf(request.unit, expectedOf(request))) this.#gaveUpAt.set(kind, this.now);
  }

  /** A reply was received, to a request of any master. */
  heard(unit: number, pdu: Uint8Array): void {
    const at = this.now;
    const kind = kindOfReply(unit, pdu);
    this.#lastOfKind.set(kind, at);
    if (this.#foreignRequest?.kinds.includes(kind)) this.#foreignRequest = undefined;
  }

  /** A reply that is about to be `heard` answers no request of this agent, not even late. */
  unsolicited(unit: number, pdu: Uint8Array): void {
    const { now } = this;
    const kind = kindOfReply(unit, pdu);
    if (now - (this.#gaveUpAt.get(kind) ?? Number.NEGATIVE_INFINITY) < lateForMs) return;
    this.#sign(now);
    const isSame = (each: Heard) => each.unit === unit && equal(each.pdu, pdu) && now - each.at < longestGapMs;
    // Two masters that read the same are given the same.
    const first = this.awaited.includes(kind) ? undefined : this.#recent.findLast(isSame);
    if (first) {
      this.#repeats++;
      this.#longestRepeatMs = Math.max(this.#longestRepeatMs, now - first.at);
    } else {
      this.#foreigner(unit, now);
      this.#readsElsewhere(kind, now);
    }
  }

  /** A received reply may answer a request of this agent, now or late. */
  mayBeOurs(unit: number, pdu: Uint8Array): void {
    this.#recent = [...this.#recent.slice(1 - mostRecent), { unit, pdu, at: this.now }];
  }

  /** A request was heard that is not ours. `answer`: what its answer looks like, where that is known. */
  request(unit: number, answer: Expected | undefined): void {
    const at = this.now;
    this.#sign(at);
    this.#foreigner(unit, at);
    if (!answer) return;
    const kinds = kindsOf(unit, answer);
    this.#foreignRequest = { kinds, at };
    this.#readsElsewhere(kinds[0] ?? "", at);
  }

  /** An answer of `unit` was taken, which came `tookMs` after its request. */
  answered(unit: number, tookMs: number): void {
    this.#answers++;
    this.took(unit, tookMs);
  }

  /** What may have been the answer of `unit` came `ms` after its request. */
  took(unit: number, ms: number): void {
    this.#slowestMs.set(unit, Math.max(ms, (this.#slowestMs.get(unit) ?? 0) * 0.999));
  }

  /** When `request` may be sent, which has waited from `since` on, by the monotonic clock; that may be long ago. */
  clearAt(request: UnitRequest, since = this.now): number {
    const kinds = kindsOf(request.unit, expectedOf(request));
    const last = Math.max(...kinds.map((kind) => this.#lastOfKind.get(kind) ?? Number.NEGATIVE_INFINITY));
    const isDisturbed = this.now - this.#signAt < disturbedForMs;
    const gap = Math.min(longestGapMs, Math.max(shortestGapMs, isDisturbed ? this.#longestRepeatMs * 1.5 : 0));
    const quietAt = Math.min(this.#foreignAt + gap, since + longestQuietMs);
    const isAwaited = this.awaited.some((kind) => kinds.includes(kind));
    return Math.max(last + gap, quietAt, isAwaited ? this.#foreignUntil : last);
  }

  /** Kinds of the reply that another master waits for now. */
  get awaited(): readonly string[] {
    return this.now < this.#foreignUntil ? (this.#foreignRequest?.kinds ?? []) : [];
  }

  /** How long an answer of `unit` is held, to see whether another one comes. 0: the bus is ours alone. */
  holdMs(unit: number): number {
    if (this.#answers >= answersForTrust) return 0;
    const slowest = this.#slowestMs.get(unit);
    if (this.#isShared) return Math.min(Math.max(2 * (slowest ?? unknownHoldMs), unknownHoldMs), longestGapMs);
    return slowest === undefined ? unknownHoldMs : Math.min(Math.max(1.5 * slowest, 20), this.#longestHoldMs);
  }

  /** Whether the answer to `request` is to be confirmed by another one before it counts. */
  needsConfirmation(request: ReadRequest): boolean {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    if (this.#answers >= answersForTrust || (this.#confirmed.get(kind) ?? 0) >= this.#answersToConfirm) return false;
    return placesOf(request).every((place) => (this.#unconfirmed.get(place) ?? 0) < mostUnconfirmed);
  }

  /** The answer to `request` was not contradicted. `isAnswered`: by the time at which the unit answered what was asked next. */
  confirmed(request: ReadRequest, isAnswered: boolean): void {
    const [kind = ""] = kindsOf(request.unit, expectedOf(request));
    if (isAnswered) this.#confirmed.set(kind, (this.#confirmed.get(kind) ?? 0) + 1);
    for (const place of placesOf(request))
      if (isAnswered) this.#unconfirmed.delete(place);
      else this.#unconfirmed.set(place, (this.#unconfirmed.get(place) ?? 0) + 1);
  }

  /** As `DistinctReads.isForeign`. */
  isForeign(request: ReadRequest): boolean {
    return this.#reads.isForeign(request, this.now);
  }

  /** As `DistinctReads.choose`, where another master reads. */
  distinct(request: ReadRequest, rules: DistinctRules): ReadRequest | undefined {
    return this.#isShared ? this.#reads.choose(request, rules, this.now) : request;
  }

  /** As `DistinctReads.came`, where another master reads. */
  came(outcome: "read" | "refused" | "silent", asked: ReadRequest, request: ReadRequest): void {
    if (this.#isShared) this.#reads.came(outcome, asked, request, this.now);
  }

  /** What disturbs the bus, or did within the last ten minutes. */
  get disturbances(): readonly Disturbance[] {
    if (this.now - this.#signAt >= disturbedForMs) return [];
    const found: Disturbance[] = [];
    const untold = this.#reads.untold(this.now);
    const without = untold && `; without a value, since it reads each length that can be asked for: ${untold}`;
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

  /** Another master reads what gives a reply of `kind`. */
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

/** The unit, and the block. */
function placesOf({ unit, table, start, count }: ReadRequest): readonly string[] {
  return [`${unit}`, `${unit} ${table}:${start} (${count})`];
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
