// Slows down the guessing of secrets by delaying responses to wrong ones.
//
//   wrong secret ──> turn of its address (10 at once, then 1/s) ──> turn of all addresses (50 at once, then 10/s) ──> 401
//                                      └── a turn more than 8 s ahead: 429 at once
//
// A correct secret is never delayed, so attackers cannot lock out a client. This bounds the cost of guesses, and the
// speed of a client that waits for responses. Against a client that does not wait, only a long secret helps. An address
// is remembered until its turns are over, at most 18 s. At most 50 + 80 + 180 addresses are remembered.
import type { IncomingMessage, ServerResponse } from "node:http";
import { isIP } from "node:net";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { RateLimitedLog } from "../../lib/flow/rate-limited-log.ts";
import { goneSignal, HttpRefusal } from "./messages.ts";

/** A client with a wrong password retries every 5 s at most, which is below this rate. */
const ofOneAddress = { atOnce: 10, spacingMs: 1_000 };
/** Limit for all addresses together. */
const ofAll = { atOnce: 50, spacingMs: 100 };
/** Below the response timeout of clients, so that they receive the 401. Also limits waiting refusals to 80. */
const longestMs = 8_000;

/** Time of the next turn at the permitted rate (generic cell rate algorithm). */
type NextTurn = number;

export class GuessBrake {
  readonly #clock: Clock;
  /** By address, in the order of the last guess. */
  readonly #next = new Map<string, NextTurn>();
  #nextOfAll: NextTurn = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#next.size;
  }

  /** Reserves the next turn for a refusal. Returns the milliseconds until it; undefined: too many already wait. */
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

  /** Removes entries whose turns are over, oldest first. */
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

/** IPv6 addresses are grouped by /64 network, since a host usually has all of its addresses. */
function networkOf(address: string): string {
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined || isIP(address) !== 6) return ipv4 ?? address;
  const [head = "", tail] = (address.split("%")[0] ?? "").split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array<string>(Math.max(0, zeros)).fill("0"), ...after].slice(0, 4).join(":");
}

/** Resolves when a 401 may be sent. Rejects with `HttpRefusal` 429 if too many wait, or if the client disconnects. */
export type CredentialBrake = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** Logs and delays refusals of wrong passwords and client secrets. */
export function credentialBrake(runtime: Runtime): CredentialBrake {
  const log = new RateLimitedLog(runtime);
  const brake = new GuessBrake(runtime.clock);
  return async (request, response) => {
    const address = request.socket.remoteAddress ?? "";
    log.warn({ part: "service", address }, "wrong credentials");
    const delayMs = brake.delayMs(address);
    if (delayMs === undefined)
      throw new HttpRefusal(429, "too_many_requests", "too many wrong credentials; the right ones are let in at once", {
        "retry-after": "8",
      });
    if (delayMs > 0) await runtime.clock.sleep(delayMs, goneSignal(response));
  };
}
