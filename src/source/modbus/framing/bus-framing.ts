// Matches requests and answers on a bus, where frames have no id: only unit, function and length identify an answer.
// Pure.
//
// After a time-out, a late answer may look like the next one. `lateReplies` tracks such answers across connections, since a
// device server on TCP passes them to any client. An answer that cannot be a late one is accepted at once. Any other is
// held until the deadline, or until the next one is due; then the last one counts, as a unit answers in order.

import type { FrameFormat } from "../config/endpoint.ts";
import {
  type Answer,
  consequenceOf,
  functionOf,
  isException,
  mismatchOf,
  type ReadRequest,
  readAskedFor,
  type UnitRequest,
} from "../config/pdu.ts";
import type { BusCodec, BusFrame } from "./bus-codec.ts";
import { type BusWatch, equal } from "./bus-watch.ts";
import { kindOfReply, type LateReplyTracker, lateReplyTracker } from "./distinct-replies.ts";
import { concatBytes, type Framing, foreignBytes, tellingBytes } from "./framing.ts";

export interface BusOptions {
  readonly codec: BusCodec;
  /** Whether the connection can be reopened after a time-out. */
  readonly reopen: boolean;
  /** Late answers of earlier connections; default: none. */
  readonly lateReplies?: LateReplyTracker;
  /** Watches other traffic on the bus; default: none is expected. */
  readonly watch?: BusWatch | undefined;
  /** Whether a unit may be asked for addresses without a tag; default: always. */
  readonly mayRead?: ((request: ReadRequest) => boolean) | undefined;
  /** Frame format and `host:port` of a TCP gateway, for messages. */
  readonly peer?: { readonly expected: FrameFormat; readonly peer: string };
}

interface Current {
  readonly request: UnitRequest;
  readonly sent: Uint8Array;
  /** Whether its data cannot be distinguished from an earlier answer. */
  readonly isAmbiguous: boolean;
  /** Answers pending when it was sent. */
  readonly earlier: number;
}

export class BusFraming implements Framing {
  readonly #options: BusOptions;
  readonly #lateReplies: LateReplyTracker;
  #current: Current | undefined;
  #received: Uint8Array = new Uint8Array(0);
  /** The PDU that is probably the answer. It is held back until no better one can come. */
  #held: Uint8Array | undefined;
  /** Whether `#held` is certainly the answer. */
  #sure = false;
  /** PDUs of the current unit that came since the request. */
  #inWindow: Uint8Array[] = [];
  /** The distinct PDUs among them that could be the answer and are not late replies. */
  #candidates: Uint8Array[] = [];
  /** Time of the first candidate. */
  #answeredAt: number | undefined;
  /** The last accepted data. `isContradicted`: a different answer has come since. */
  #accepted: { readonly request: ReadRequest; readonly pdu: Uint8Array; isContradicted: boolean } | undefined;
  #confirmation: ReadRequest | undefined;
  /** Kinds of replies to another master that were possible since the request. */
  #contested = new Set<string>();
  #sentAt = 0;
  #settlesAt: number | undefined;
  /** Bytes without a frame since the request and the last frame. */
  #noise = 0;
  /** The last request, and the first bytes since. */
  #sent: UnitRequest | undefined;
  #first: Uint8Array = new Uint8Array(0);
  discarded = 0;
  late = { unit: 0, count: 0 };
  #mismatch: string | undefined;

  constructor(options: BusOptions) {
    this.#options = options;
    this.#lateReplies = options.lateReplies ?? lateReplyTracker();
  }

  get mismatch(): string | undefined {
    if (this.#mismatch !== undefined || this.#noise === 0) return this.#mismatch;
    const { peer } = this.#options;
    const foreign = peer && this.#sent && foreignBytes(this.#first, { request: this.#sent, ...peer });
    if (foreign) return `${foreign.what} in it; ${foreign.hint}`;
    return `${this.#noise} bytes and no valid checksum; are baud rate, parity and wiring as they should be?`;
  }

  resync(request: UnitRequest): UnitRequest | undefined {
    return this.#lateReplies.resync(request, this.#options.mayRead);
  }

  begin(request: UnitRequest, pdu: Uint8Array): Uint8Array {
    const sent = this.#options.codec.encode({ unit: request.unit, pdu });
    const { unit } = request;
    this.#current = {
      request,
      sent,
      isAmbiguous: this.#lateReplies.isAmbiguous(request),
      earlier: this.#lateReplies.count(unit),
    };
    this.#received = new Uint8Array(0);
    this.#held = undefined;
    this.#sure = false;
    this.#inWindow = [];
    this.#candidates = [];
    this.#answeredAt = undefined;
    this.#contested = new Set(this.#options.watch?.awaited);
    this.#sentAt = this.#now();
    this.#settlesAt = undefined;
    this.#noise = 0;
    this.#sent = request;
    this.#first = new Uint8Array(0);
    this.#mismatch = undefined;
    return sent;
  }

  receive(chunk: Uint8Array): Uint8Array | undefined {
    this.#noise += chunk.length;
    if (this.#first.length < tellingBytes) this.#first = concatBytes(this.#first, chunk);
    this.#received = concatBytes(this.#received, chunk);
    this.#stripEcho();
    const { frames, rest } = this.#options.codec.scan(this.#received, this.#current?.request);
    this.#received = this.#received.slice(rest);
    for (const frame of frames) this.#take(frame);
    if (!this.#current || !this.#sure) return undefined;
    const { request } = this.#current;
    // A confirming answer is accepted at once if it is unambiguous, otherwise held like any other.
    const isEnough = request === this.#confirmation && this.#candidates.length === 1 && this.#contested.size === 0;
    const holdMs = isEnough ? 0 : (this.#options.watch?.holdMs(request.unit) ?? 0);
    this.#settlesAt ??= this.#now() + holdMs;
    return holdMs > 0 ? undefined : this.settle();
  }

  clearAt(request: UnitRequest, since: number): number {
    return this.#options.watch?.clearAt(request, since) ?? Number.NEGATIVE_INFINITY;
  }

  distinct(request: UnitRequest): UnitRequest | undefined {
    const { watch, mayRead = () => true } = this.#options;
    if ("identity" in request || !watch) return request;
    return watch.distinct(request, { mayRead, isAmbiguous: (each) => this.#lateReplies.isAmbiguous(each) });
  }

  refusesMore(sent: UnitRequest, request: UnitRequest, answer: Answer | undefined): boolean {
    if ("identity" in request || "identity" in sent) return false;
    const consequence = answer?.kind === "exception" ? consequenceOf(answer.code) : undefined;
    // These exceptions do not depend on the addresses.
    if (consequence === "busy" || consequence === "away") return false;
    const isRefused = consequence !== undefined && sent !== request;
    this.#options.watch?.came(isRefused ? "refused" : answer ? "read" : "silent", sent, request);
    return isRefused;
  }

  get settlesAt(): number | undefined {
    return this.#current && this.#settlesAt;
  }

  settle(): Uint8Array | undefined {
    const request = this.#current?.request;
    const [answer, other] = this.#candidates;
    this.#current = undefined;
    if (!request || !answer) return undefined;
    if (!other && !this.#contested.has(kindOfReply(request.unit, answer))) {
      const at = this.#answeredAt ?? this.#now();
      this.#options.watch?.answered(request.unit, at - this.#sentAt);
      if (request !== this.#confirmation && !("identity" in request) && !isException(answer, functionOf(request)))
        this.#accepted = { request, pdu: answer, isContradicted: false };
      return answer;
    }
    // The reply may belong to the other master.
    if (!other) this.#lateReplies.add(request);
    this.#discard("the form of a reply to another master");
    return undefined;
  }

  confirmation(sent: UnitRequest): ReadRequest | undefined {
    const { watch, mayRead = () => true } = this.#options;
    if ("identity" in sent || this.#accepted?.request !== sent || !watch?.needsConfirmation(sent)) return undefined;
    this.#confirmation = this.#lateReplies.confirmation(sent, (each) => mayRead(each) && !watch.isForeign(each));
    return this.#confirmation;
  }

  isConfirmed(outcome: "answered" | "silent" | "contested" | "closed" | "lost"): boolean {
    const accepted = this.#accepted;
    this.#accepted = undefined;
    this.#confirmation = undefined;
    if (!accepted || accepted.isContradicted || outcome === "contested") return false;
    if (outcome !== "lost") this.#options.watch?.confirmed(accepted.request, outcome === "answered");
    return true;
  }

  get holding(): boolean {
    return this.#current !== undefined && this.#inWindow.length > 0 && this.#inWindow.length <= this.#current.earlier;
  }

  expire(): Uint8Array | undefined {
    const current = this.#current;
    const held = this.#held;
    if (!current || !held) return undefined;
    const { request, isAmbiguous, earlier } = current;
    if (this.#contested.has(kindOfReply(request.unit, held))) return undefined;
    this.#current = undefined;
    const lastHope = isAmbiguous && this.resync(request) === undefined;
    if (this.#inWindow.length > earlier || lastHope) this.#lateReplies.settle(request.unit);
    else {
      // It may be an earlier answer; then the current one is still to come.
      this.#lateReplies.came(request.unit, held);
      this.#lateReplies.add(request);
    }
    return held;
  }

  abandon(): boolean {
    if (this.#current) {
      this.#lateReplies.add(this.#current.request);
      this.#options.watch?.timedOut(this.#current.request);
      if (this.#noise > 0 && this.#mismatch === undefined) this.discarded++;
    }
    this.#current = undefined;
    return !this.#options.reopen;
  }

  #take({ unit, pdu }: BusFrame): void {
    const { watch } = this.#options;
    this.#noise = 0;
    const request = this.#current?.request;
    const foreign = readAskedFor(pdu);
    if (foreign) {
      watch?.request(unit, foreign);
      for (const kind of watch?.awaited ?? []) this.#contested.add(kind);
      this.#discard("the request of another master");
      return;
    }
    const accepted = this.#accepted;
    // An exception may answer the confirming request.
    if (accepted?.request.unit === unit && kindOfReply(unit, pdu) === kindOfReply(unit, accepted.pdu))
      accepted.isContradicted ||= !equal(pdu, accepted.pdu);
    const isPerhapsLate = this.#lateReplies.include(unit, pdu);
    const mismatch =
      unit === request?.unit ? mismatchOf(pdu, request) : `unit ${unit} instead of ${request?.unit ?? "none"}`;
    const again = this.#inWindow.some((each) => equal(each, pdu));
    const further = this.#candidates.length > 0;
    const mayBeOurs = isPerhapsLate || mismatch === undefined;
    watch?.received(unit, pdu, mayBeOurs, !isPerhapsLate && (mismatch !== undefined || further));
    if (again && watch?.repeating) {
      this.discarded++;
      return;
    }
    if (unit === request?.unit) this.#inWindow.push(pdu);
    if (mismatch !== undefined) {
      this.#cameLate(unit, pdu);
      this.#discard(mismatch);
      return;
    }
    if (this.#held) this.discarded++;
    this.#held = pdu;
    this.#sure = !isPerhapsLate;
    if (isPerhapsLate) return;
    this.#lateReplies.settle(unit);
    this.#answeredAt ??= this.#now();
    if (again) return;
    this.#candidates.push(pdu);
    if (further) watch?.took(unit, this.#now() - this.#sentAt);
  }

  #now(): number {
    return this.#options.watch?.now ?? 0;
  }

  /** Removes the late answer that `pdu` is, if one may still come. */
  #cameLate(unit: number, pdu: Uint8Array): void {
    if (this.#lateReplies.include(unit, pdu)) this.late = { unit, count: this.late.count + 1 };
    this.#lateReplies.came(unit, pdu);
  }

  /** Removes the echo of the request, which some adapters return. */
  #stripEcho(): void {
    const sent = this.#current?.sent;
    const at = sent === undefined ? -1 : Buffer.from(this.#received).indexOf(sent);
    if (sent === undefined || at < 0) return;
    this.#received = this.#received.slice(at + sent.length);
    this.#mismatch ??= "the echo of the request";
  }

  #discard(mismatch: string): void {
    this.discarded++;
    this.#mismatch = mismatch;
  }
}
