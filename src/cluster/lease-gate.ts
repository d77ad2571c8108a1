// Admits requests to the service only while this agent holds the delivery lease, so all agents share one rate.
//
//   old holder   renew ──700 ms──┊ no request starts after this
//   new holder          acquire ─── interval + 700 ms + 500 ms ───▶ first request
//
// The old holder's last renewal precedes the acquisition. Its last request starts at most 700 ms after this renewal was
// sent, and the service counts it at most 500 ms later, as the pacer assumes. Then the interval follows.
import { isAgentError } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";
import type { RequestGate } from "../core/sink.ts";
import { orAbort } from "../lib/flow/abort.ts";
import type { LeaseTerm } from "./lease.ts";

export const startWithinMs = 700;
/** Maximum time from the start of a request until the service counts it; as in the pacer. */
export const transitMs = 500;
const retryMs = 100;

/** `intervalMs`: interval between requests of the slowest method. */
export function leaseGate(term: LeaseTerm, intervalMs: number, clock: Clock): RequestGate {
  const opensAt = term.since + intervalMs + startWithinMs + transitMs;
  let renewedAt = Number.NEGATIVE_INFINITY;
  const isOpen = () => !term.signal.aborted && clock.monotonic() - renewedAt < startWithinMs;
  return {
    get isOpen() {
      return isOpen();
    },
    async pass(signal) {
      for (let wait = opensAt - clock.monotonic(); wait > 0; wait = opensAt - clock.monotonic())
        await clock.sleep(wait, signal);
      for (;;) {
        signal.throwIfAborted();
        try {
          const sentAt = await orAbort(term.renew(), signal);
          // The term is over: wait for the owner of the uploader to close it.
          if (sentAt === undefined) await orAbort(new Promise<never>(() => {}), signal);
          else renewedAt = sentAt;
          if (isOpen()) return;
        } catch (error) {
          if (!isAgentError(error)) throw error;
        }
        await clock.sleep(retryMs, signal);
      }
    },
  };
}
