// Reports the agent's state to systemd (sd_notify): ready, reloading, stopping, and heartbeats for its watchdog. Node cannot
// open Unix datagram sockets, so this runs systemd's own helper, systemd-notify.
import type { Runtime } from "../../core/runtime.ts";
import { repeat } from "../../lib/flow/repeat.ts";

export interface ServiceManager extends AsyncDisposable {
  /** Reports that the agent has started, with `status` for `systemctl status`, and starts the heartbeats. */
  ready(status: string): Promise<void>;
  /** Reports the begin of a reload; `reloaded` reports its end. */
  reloading(): Promise<void>;
  reloaded(): Promise<void>;
}

/** Heartbeats per watchdog timeout. */
const heartbeatsPerTimeout = 3;
/** Longer than systemd-notify ever takes. Stuck helpers must not accumulate. In milliseconds. */
const helperTimeoutMs = 10_000;

/**
 * Uses `NOTIFY_SOCKET` and `WATCHDOG_USEC`; without them, all calls do nothing. If the event loop is blocked, no
 * heartbeat is sent, and systemd restarts the program after `WatchdogSec`. Disposing reports the stop.
 */
export function serviceManager(
  variables: Readonly<Record<string, string | undefined>>,
  runtime: Pick<Runtime, "clock" | "log">,
): ServiceManager {
  const { NOTIFY_SOCKET: socket = "", WATCHDOG_USEC: timeout, WATCHDOG_PID: watched } = variables;
  let living: AsyncDisposable | undefined;
  let complained = false;
  const notifyManager = async (...states: readonly string[]) => {
    if (socket === "") return;
    const failure = await notify(states, socket);
    if (failure === undefined || complained) return;
    complained = true;
    runtime.log.warn({ reason: failure }, "cannot report the program's state to systemd; is systemd-notify installed?");
  };
  const timeoutMs = socket === "" ? 0 : Number(timeout) / 1_000;
  const mine = watched === undefined || Number(watched) === process.pid;
  const sendHeartbeat = () => notifyManager("WATCHDOG=1");
  const heartbeats = {
    everyMs: timeoutMs / heartbeatsPerTimeout,
    first: "now",
    failure: "systemd gets no heartbeats",
  } as const;
  return {
    async ready(status) {
      await notifyManager("READY=1", `STATUS=${status}`);
      if (timeoutMs > 0 && mine) living ??= repeat(sendHeartbeat, heartbeats, runtime);
    },
    reloading: () => notifyManager("RELOADING=1"),
    reloaded: () => notifyManager("READY=1"),
    async [Symbol.asyncDispose]() {
      await living?.[Symbol.asyncDispose]();
      await notifyManager("STOPPING=1");
    },
  };
}

/** Resolves with the error, or with undefined. */
function notify(states: readonly string[], socket: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, NOTIFY_SOCKET: socket };
    // Loaded only if there is a service manager.
    const { execFile } = process.getBuiltinModule("node:child_process");
    execFile("systemd-notify", [...states], { env, timeout: helperTimeoutMs }, (error) => resolve(error?.message));
  });
}
