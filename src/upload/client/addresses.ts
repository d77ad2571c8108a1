// Where the name of a service leads. Connections stay open for as long as they work, so it is asked for again from time to
// time: a service that has moved is followed although its old address still answers.
import { ADDRCONFIG, type LookupAddress, type LookupAllOptions } from "node:dns";
import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import type { Clock } from "../../core/runtime.ts";

/** As `dns.lookup` does it. */
export type Resolve = (name: string, options: LookupAllOptions) => Promise<readonly LookupAddress[]>;

/** Between two questions while a connection stays open. */
const askedEveryMs = 60_000;
/** For how long at most an answer that took its time is used for the next connections too. */
const mostKeptMs = 30_000;

interface Question {
  readonly name: string;
  readonly answer: Promise<readonly LookupAddress[]>;
  /** Who asks before this (monotonic, ms) is given the same answer. */
  until: number;
}

export class Addresses {
  readonly #name: string;
  readonly #clock: Clock;
  readonly #resolve: Resolve;
  #question: Question | undefined;
  #current: ReadonlySet<string> = new Set();
  #askedAt: number;

  /** `name`: of the machine that is connected to. */
  constructor(name: string, clock: Clock, resolve: Resolve = lookup) {
    this.#name = name;
    this.#clock = clock;
    this.#resolve = resolve;
    this.#askedAt = clock.monotonic();
  }

  /** For `net.connect`. */
  readonly lookup: LookupFunction = (name, options, callback) => {
    this.#ask(name, { ...options, all: true }).then(
      (found) => {
        if (options.all === true) callback(null, [...found]);
        else callback(null, found[0]?.address ?? "", found[0]?.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, ""),
    );
  };

  /** Asks again, in the background, when the last answer is a minute old. One that fails changes nothing. */
  refresh(): void {
    const now = this.#clock.monotonic();
    if (isIP(this.#name) !== 0 || now - this.#askedAt < askedEveryMs) return;
    this.#askedAt = now;
    // As `net.connect` asks.
    this.#ask(this.#name, { all: true, hints: ADDRCONFIG }).catch(() => {});
  }

  /** Whether the name led to `address` when it was asked for last. */
  leadTo(address: string | undefined): boolean {
    return address === undefined || this.#current.size === 0 || this.#current.has(address);
  }

  /**
   * One question at a time, whoever asks: a name server that does not answer keeps one of the few threads for half a
   * minute. What came so late is kept for as long as it took, for whoever asked may not have waited for it.
   */
  #ask(name: string, options: LookupAllOptions): Promise<readonly LookupAddress[]> {
    const begun = this.#clock.monotonic();
    if (this.#question?.name === name && begun < this.#question.until) return this.#question.answer;
    const question: Question = {
      name,
      until: Number.POSITIVE_INFINITY,
      answer: this.#resolve(name, options).then(
        (found) => {
          const now = this.#clock.monotonic();
          question.until = now + Math.min(now - begun, mostKeptMs);
          this.#askedAt = now;
          this.#current = new Set(found.map(({ address }) => address));
          return found;
        },
        (error: unknown) => {
          question.until = 0;
          throw error;
        },
      ),
    };
    this.#question = question;
    return question.answer;
  }
}
