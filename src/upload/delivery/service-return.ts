// Notices that a service which was unreachable takes connections again, so that a back-off need not run to its end.
//
//   request fails   |x                                     x  request at the end of the back-off, without probes
//   probes          |x . x . x . x . o                        x no connection, o connection
//   request         |                 x                       at most 1.25 s and a connection after the return
//
// Only the change from "no connection" to "connection" counts: a service, proxy or portal that takes connections all the
// time and answers nothing useful gets one request for each back-off, as before. A request under way is left to its own
// time-outs: in a network that drops packets, TCP asks for its connection again up to 8 s apart, and it fails after 20 s.
import type { Runtime } from "../../core/runtime.ts";
import type { Sink } from "../../core/sink.ts";

/** Milliseconds between two probes, on average; agents that lost the same service do not come back in step. */
const probeEveryMs = 1_000;
const spread = 0.25;

/** Gives a function that resolves when the destination takes a connection after it took none. It rejects with `signal.reason`. */
export function openServiceReturn(
  connects: NonNullable<Sink["connects"]>,
  { clock, random }: Pick<Runtime, "clock" | "random">,
): (signal: AbortSignal) => Promise<void> {
  /** What the last probe found, also the one before the last request: that may have failed as the service came back. */
  let wasAway = false;
  return async (signal) => {
    for (;;) {
      const isThere = await connects(signal);
      const isBack = isThere && wasAway;
      wasAway = !isThere;
      if (isBack) return;
      await clock.sleep(probeEveryMs * (1 - spread + 2 * spread * random()), signal);
    }
  };
}
