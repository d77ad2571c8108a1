// Detects that an unreachable service accepts connections again, to end the back-off early.
//
//   request fails   |x                                     x  request at the end of the back-off, without probes
//   probes          |x . x . x . x . o                        x no connection, o connection
//   request         |                 x                       at most 1.25 s and a connection after the return
//
// Only the change from "no connection" to "connection" counts. A service, proxy or portal that always accepts
// connections but gives no useful answer still gets one request per back-off. A running request keeps its own
// time-outs. If the network drops packets, TCP repeats connection attempts up to 8 s apart, and the request fails after
// 20 s.
import type { Runtime } from "../../core/runtime.ts";
import type { Sink } from "../../core/sink.ts";

/** Shortest average interval of probes in milliseconds. Random, so that agents do not return simultaneously. */
const probeEveryMs = 1_000;
const spread = 0.25;

/** Returns a function that resolves when the destination accepts connections again. Rejects with `signal.reason`. */
export function openServiceReturn(
  connects: NonNullable<Sink["connects"]>,
  { clock, random }: Pick<Runtime, "clock" | "random">,
  everyMs: number = probeEveryMs,
): (signal: AbortSignal) => Promise<void> {
  /** Result of the last probe, even from before the last request, which may have failed during the return. */
  let wasAway = false;
  return async (signal) => {
    for (;;) {
      const isThere = await connects(signal);
      const isBack = isThere && wasAway;
      wasAway = !isThere;
      if (isBack) return;
      await clock.sleep(Math.max(everyMs, probeEveryMs) * (1 - spread + 2 * spread * random()), signal);
    }
  };
}
