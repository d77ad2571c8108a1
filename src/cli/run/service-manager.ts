// Reports the agent's state to systemd (sd_notify): ready, reloading, stopping, and heartbeats for its watchdog. Node cannot
// open Unix datagram sockets, so this runs systemd's own helper, systemd-notify.
import type { Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/repeat.ts";

export interface ServiceManager extends AsyncDisposable {
  /** The agent has started; `status` is the line that `systemctl status` shows. Starts the signs of life. */
  ready(status: string): Promise<void>;
  /** A reload has begun; `reloaded` ends it. */
  reloading(): Promise<void>;
  reloaded(): Promise<void>;
}

/** How many signs of life are sent in the time after which the watchdog acts. */
const signsPerTimeout = 3;
/** Longer than systemd's helper ever takes; a stuck one must not pile up. In milliseconds. */
const helperTimeoutMs = 10_000;

/**
 * The service manager that started this process, as `NOTIFY_SOCKET` and `WATCHDOG_USEC` say; without them all is silent.
 * `alive` is asked before each sign of life: where it says no, none is sent and systemd starts the program anew after
 * `WatchdogSec`. So it must say no only where a new start helps. Disposing says that the program stops.
 */
export function serviceManager(
  variables: Readonly<Record<string, string | undefined>>,
  alive: () => boolean,
  runtime: Pick<Runtime, "clock" | "log">,
): ServiceManager {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: timeout, WATCHDOG_PID: watched } = variables;
  if (socket === undefined || socket === "")
    return {
      ready: async () => {},
      reloading: async () => {},
      reloaded: async () => {},
      [Symbol.asyncDispose]: async () => {},
    };
  let living: AsyncDisposable | undefined;
  let complained = false;
  const tell = async (...states: readonly string[]) => {
    const failure = await notify(states, socket);
    if (failure === undefined || complained) return;
    complained = true;
    runtime.log.warn({ reason: failure }, "cannot report the program's state to systemd; is systemd-notify installed?");
  };
  const timeoutMs = Number(timeout) / 1_000;
  const mine = watched === undefined || Number(watched) === process.pid;
  const sign = async () => {
    if (alive()) await tell("WATCHDOG=1");
  };
  const signs = { everyMs: timeoutMs / signsPerTimeout, first: "now", failure: "systemd gets no heartbeats" } as const;
  return {
    async ready(status) {
      await tell("READY=1", `STATUS=${status}`);
      if (timeoutMs > 0 && mine) living ??= repeat(sign, signs, runtime);
    },
    reloading: () => tell("RELOADING=1"),
    reloaded: () => tell("READY=1"),
    async [Symbol.asyncDispose]() {
      await living?.[Symbol.asyncDispose]();
      await tell("STOPPING=1");
    },
  };
}

/** Resolves with why it could not be told, or with undefined. */
function notify(states: readonly string[], socket: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, NOTIFY_SOCKET: socket };
    // Loaded where there is a service manager, and nowhere else.
    const { execFile } = process.getBuiltinModule("node:child_process");
    execFile("systemd-notify", [...states], { env, timeout: helperTimeoutMs }, (error) => resolve(error?.message));
  });
}
