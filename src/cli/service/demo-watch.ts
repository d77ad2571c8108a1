// The progress of `tagferry demo`: a line a second, and an outage of the service.
import type { Agent } from "../../agent/agent.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { DemoDevices } from "../../demo/devices.ts";
import type { Service } from "../../service/service.ts";
import type { Console } from "../terminal/console.ts";

const outageMs = 5_000;
/** The outage begins after this share of the duration, or after 20 s if the duration is unlimited. */
const outageAt = 0.35;
const outageAfterMs = 20_000;

interface Watched {
  readonly service: Service;
  readonly devices: DemoDevices;
  readonly agent: Agent;
  readonly io: Console;
  readonly runtime: Runtime;
  readonly duration: number | undefined;
}

/** Prints a line a second and runs the outage. Resolves with the length of the outage in milliseconds. */
export async function watch(watched: Watched): Promise<number> {
  const { devices, agent, io, runtime, duration } = watched;
  const started = runtime.clock.monotonic();
  let away = false;
  const over = outage(watched, (now) => {
    away = now;
  });
  // A signal ends both the outage and this loop; the loop throws the error.
  over.catch(() => {});
  for (let at = 1_000; ; at += 1_000) {
    const target = Math.min(at, duration ?? Number.POSITIVE_INFINITY);
    await runtime.clock.sleep(Math.max(0, started + target - runtime.clock.monotonic()), io.signal);
    io.print(summary(target, devices, agent, away));
    if (target === duration) return over;
  }
}

/** Cuts connections and refuses new ones for a while. Resolves with the length in milliseconds, rounded to seconds. */
async function outage({ service, io, runtime, duration }: Watched, isAway: (now: boolean) => void): Promise<number> {
  await runtime.clock.sleep(duration === undefined ? outageAfterMs : duration * outageAt, io.signal);
  io.print("      -- the service is switched off: it refuses every connection");
  await service.pause();
  isAway(true);
  const began = runtime.clock.monotonic();
  await runtime.clock.sleep(outageMs, io.signal);
  const lasted = runtime.clock.monotonic() - began;
  await service.resume();
  isAway(false);
  io.print("      -- the service is back; the agent waits up to 15 s between attempts");
  return Math.round(lasted / 1_000) * 1_000;
}

function summary(elapsedMs: number, devices: DemoDevices, agent: Agent, away: boolean): string {
  const { buffer, upload, sources } = agent.status();
  const online = sources.filter(({ state }) => state === "online").length;
  const lag = upload.lagMs === undefined ? "-" : `${(upload.lagMs / 1_000).toFixed(1)} s`;
  return [
    `${String(Math.round(elapsedMs / 1_000)).padStart(3)} s`,
    `sources ${online}/${sources.length}`,
    `produced ${String(devices.count).padStart(6)}`,
    `delivered ${String(upload.points).padStart(6)}`,
    `on disk ${String(buffer.unsettledPoints).padStart(5)}`,
    `requests ${String(upload.requests).padStart(4)}`,
    `lag ${lag}`,
    away ? "service away" : upload.state,
  ].join("  ");
}
