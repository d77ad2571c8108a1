// The compared programs, each as its users run it: tagferry built, with the flags and the environment of its unit and
// its buffer on disk; Telegraf with its memory buffer, sending JSON or the service's own requests.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import type { Setting } from "./setting.ts";
import { tagferryConfiguration } from "./tagferry-configuration.ts";
import { telegrafConfiguration } from "./telegraf-configuration.ts";

export interface Program {
  readonly name: string;
  start(setting: Setting): RunningProgram;
}

export interface RunningProgram extends AsyncDisposable {
  readonly pid: number;
  /** Rejects with the end of its log if it ends by itself. */
  readonly ended: Promise<never>;
  /** Sends SIGTERM, and SIGKILL after half a minute. */
  stop(): Promise<void>;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
}

/** `folder` is a build, as `npm run build` writes it to `dist`. */
export function tagferry(name: string, folder: string): Program {
  const environment = unitEnvironment();
  return {
    name,
    start(setting) {
      const file = join(setting.home, "tagferry.yaml");
      writeFileSync(file, tagferryConfiguration(setting));
      const cache = join(setting.home, "cache");
      mkdirSync(cache, { recursive: true });
      const env = { ...environment, NODE_COMPILE_CACHE: cache };
      return run(setting.home, env, [process.execPath, ...nodeFlags, join(folder, "main.js"), "run", "-c", file]);
    },
  };
}

/** `output`: `lines` sends batches of JSON, `service` the requests of the service. */
export function telegraf(name: string, program: string, output: "lines" | "service"): Program {
  return {
    name,
    start(setting) {
      const file = join(setting.home, "telegraf.conf");
      writeFileSync(file, telegrafConfiguration(setting, output));
      return run(setting.home, {}, [program, "--config", file]);
    },
  };
}

/** The environment that the systemd unit sets, so that the packaged configuration is measured. */
function unitEnvironment(): Readonly<Record<string, string>> {
  const unit = readFileSync(join(import.meta.dirname, "../../../systemd/tagferry.service"), "utf8");
  const settings = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line = ""]) => line.split(" "));
  return Object.fromEntries(settings.map((setting) => setting.split("=") as [string, string])); // NAME=value
}

function run(home: string, env: Readonly<Record<string, string>>, command: readonly string[]): RunningProgram {
  const logFile = join(home, "log");
  const log = openSync(logFile, "w");
  // The kernel ends the program when this process ends for any reason.
  const child = spawn("setpriv", ["--pdeathsig", "KILL", ...command], {
    stdio: ["ignore", log, log],
    env: { PATH: process.env["PATH"], ...env },
  });
  closeSync(log);
  const exited = new Promise<void>((resolve, reject) => {
    child.once("exit", () => resolve());
    child.once("error", reject);
  });
  let isStopping = false;
  const ended = exited.then((): never => {
    const words = isStopping ? "" : readFileSync(logFile, "utf8").slice(-600);
    throw new Error(`${command[0]} has ended with ${child.exitCode ?? child.signalCode}: ${words}`);
  });
  ended.catch(() => {});
  const end = async (signal: "SIGTERM" | "SIGKILL") => {
    isStopping = true;
    child.kill(signal);
    await exited;
  };
  return {
    pid: child.pid ?? 0,
    ended,
    kill: () => end("SIGKILL"),
    async stop() {
      const patience = new AbortController();
      const late = sleep(30_000, undefined, { signal: patience.signal }).then(
        () => child.kill("SIGKILL"),
        () => {},
      );
      await end("SIGTERM");
      patience.abort();
      await late;
    },
    [Symbol.asyncDispose]: () => end("SIGKILL"),
  };
}
