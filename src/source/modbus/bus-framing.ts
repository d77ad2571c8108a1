// Requests and answers on a bus, where frames have no id and an answer is known by its unit, function and length alone. Pure.
//
// After a time-out the answer may still come, and look just like the next one. Over TCP the connection is then opened
// anew. On a line the unit is in doubt: the next time it is asked, an answer is held back until the deadline, or until one
// that follows it would have come, and only the last one that comes counts, since a unit answers in the order it is asked.
import type { BusCodec, BusFrame } from "./bus-codec.ts";
import { joined } from "./bytes.ts";
import type { Framing } from "./framing.ts";
import type { Answer, UnitRequest } from "./pdu.ts";
import { decodeReply, encodeRequest } from "./pdu.ts";

export interface BusOptions {
  readonly codec: BusCodec;
  /** Whether the connection can be opened anew after a time-out, which settles every doubt. */
  readonly reopen: boolean;
}

export class BusFraming implements Framing {
  readonly #options: BusOptions;
  #current: { readonly request: UnitRequest; readonly sent: Uint8Array } | undefined;
  #received: Uint8Array = new Uint8Array(0);
  /** Units that may still answer requests that were given up, and how many of these. */
  readonly #doubted = new Map<number, number>();
  #held: Answer | undefined;
  /** Frames of the unit that is asked since it was. */
  #heard = 0;
  #discarded = 0;
  #mismatch: string | undefined;

  constructor(options: BusOptions) {
    this.#options = options;
  }

  get discarded(): number {
    return this.#discarded;
  }

  get mismatch(): string | undefined {
    return this.#mismatch;
  }

  begin(request: UnitRequest): Uint8Array {
    const sent = this.#options.codec.encode({ unit: request.unit, pdu: encodeRequest(request) });
    this.#current = { request, sent };
    this.#received = new Uint8Array(0);
    this.#held = undefined;
    this.#heard = 0;
    this.#mismatch = undefined;
    return sent;
  }

  receive(chunk: Uint8Array): Answer | undefined {
    this.#received = joined(this.#received, chunk);
    this.#stripEcho();
    const { frames, rest } = this.#options.codec.scan(this.#received, this.#current?.request);
    this.#received = this.#received.slice(rest);
    for (const frame of frames) this.#take(frame);
    const current = this.#current;
    if (!current || this.#held === undefined || this.#doubted.has(current.request.unit)) return undefined;
    this.#current = undefined;
    return this.#held;
  }

  get holding(): boolean {
    const doubted = this.#doubted.get(this.#current?.request.unit ?? -1) ?? 0;
    return this.#held !== undefined && this.#heard <= doubted;
  }

  expire(): Answer | undefined {
    const answer = this.#current && this.#held;
    if (answer && this.#current) this.#doubted.delete(this.#current.request.unit);
    if (answer) this.#current = undefined;
    return answer;
  }

  abandon(): boolean {
    const unit = this.#current?.request.unit;
    if (unit !== undefined) this.#doubted.set(unit, (this.#doubted.get(unit) ?? 0) + 1);
    this.#current = undefined;
    return !this.#options.reopen;
  }

  #take({ unit, pdu }: BusFrame): void {
    const request = this.#current?.request;
    if (unit !== request?.unit) {
      // One of those that were still to come has come.
      const still = (this.#doubted.get(unit) ?? 0) - 1;
      if (still > 0) this.#doubted.set(unit, still);
      else this.#doubted.delete(unit);
      this.#discard(`unit ${unit} instead of ${request?.unit ?? "none"}`);
      return;
    }
    this.#heard++;
    const answer = decodeReply(pdu, request);
    if (typeof answer === "string") this.#discard(answer);
    else {
      if (this.#held) this.#discarded++;
      this.#held = answer;
    }
  }

  /** Some adapters hear what they send. Their own request must not be taken for an answer. */
  #stripEcho(): void {
    const sent = this.#current?.sent;
    const at = sent === undefined ? -1 : Buffer.from(this.#received).indexOf(sent);
    if (sent === undefined || at < 0) return;
    this.#received = this.#received.slice(at + sent.length);
    this.#mismatch ??= "the echo of the request";
  }

  #discard(mismatch: string): void {
    this.#discarded++;
    this.#mismatch = mismatch;
  }
}
