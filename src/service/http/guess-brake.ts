// Slows the guessing of secrets down, without a lock: it delays the refusals of wrong secrets, and nothing else.
//
//   wrong secret ──> turn of its address (10 at once, then 1/s) ──> turn of all addresses (50 at once, then 10/s) ──> 401
//                                      └── a turn more than 8 s ahead: 429 at once
//
// A right secret never passes through here, so others cannot keep its client out. Hence this bounds what guesses cost
// the service and how fast a client that waits for answers can guess. Against a client that does not wait only a long
// secret helps. An address is remembered until its turns are over, 18 s at most, and each has had a turn of all: there
// are never more than 50 + 80 + 180 of them.
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { RateLimitedLog } from "../../lib/rate-limited-log.ts";
import { goneSignal, HttpRefusal } from "./messages.ts";

/** A client with a wrong password asks every 5 s at most and stays below this rate. */
const ofOneAddress = { atOnce: 10, spacingMs: 1_000 };
/** The turns of several addresses that guess at full speed. */
const ofAll = { atOnce: 50, spacingMs: 100 };
/** Shorter than clients wait for an answer, so that they see the 401. Also bounds how many refusals wait: 80. */
const longestMs = 8_000;

/** When the next turn is, if refusals are given no faster than the rate: generic cell rate algorithm. */
type NextTurn = number;

export class GuessBrake {
  readonly #clock: Clock;
  /** By address, the one that guessed last at the end. */
  readonly #next = new Map<string, NextTurn>();
  #nextOfAll: NextTurn = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** How many addresses are remembered. */
  get size(): number {
    return this.#next.size;
  }

  /** Takes the next turn for the refusal of a wrong secret: milliseconds until it. Undefined: there are too many already. */
  delayMs(address: string): number | undefined {
    const now = this.#clock.monotonic();
    const key = networkOf(address);
    this.#forget(now);
    const next = Math.max(this.#next.get(key) ?? now, now);
    const nextOfAll = Math.max(this.#nextOfAll, now);
    const wait = Math.max(0, waitOf(ofOneAddress, next, now), waitOf(ofAll, nextOfAll, now));
    if (wait > longestMs) return undefined;
    this.#nextOfAll = nextOfAll + ofAll.spacingMs;
    this.#next.delete(key);
    this.#next.set(key, next + ofOneAddress.spacingMs);
    return wait;
  }

  /** The oldest entries go when their turns are over. */
  #forget(now: number): void {
    for (const [key, next] of this.#next) {
      if (next > now) return;
      this.#next.delete(key);
    }
  }
}

function waitOf({ atOnce, spacingMs }: typeof ofAll, next: NextTurn, now: number): number {
  return next - now - (atOnce - 1) * spacingMs;
}

/** Who has one address of an IPv6 network has 2^64 of them. */
function networkOf(address: string): string {
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined || isIP(address) !== 6) return ipv4 ?? address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after].slice(0, 4).join(":");
}

/** Wrong passwords and client secrets: logs them, and delays their refusal. */
export class CredentialRefusals {
  readonly #clock: Clock;
  readonly #log: RateLimitedLog;
  readonly #brake: GuessBrake;

  constructor(runtime: Runtime) {
    this.#clock = runtime.clock;
    this.#log = new RateLimitedLog(runtime);
    this.#brake = new GuessBrake(runtime.clock);
  }

  /**
   * Resolves when the request may be refused with 401. Rejects with `HttpRefusal` 429 when too many wrong secrets wait,
   * or with another error when the client went away. The right secret is let in without asking here.
   */
  async turn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const address = request.socket.remoteAddress ?? "";
    this.#log.warn({ part: "service", address }, "wrong credentials");
    const delayMs = this.#brake.delayMs(address);
    if (delayMs === undefined)
      throw new HttpRefusal(429, "too_many_requests", "too many wrong credentials; the right ones are let in at once", {
        "retry-after": "8",
      });
    if (delayMs === 0) return;
    await this.#clock.sleep(delayMs, goneSignal(response));
  }
}
