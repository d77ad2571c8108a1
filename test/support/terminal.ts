// A program on a real terminal: a pseudo-terminal of util-linux's `script`, with keys typed as by a user.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { eventually } from "./eventually.ts";

export interface Terminal extends AsyncDisposable {
  /** Everything shown so far, including control sequences. */
  screen(): string;
  /** Types `keys` once `shown` has appeared on the screen after the previously awaited text. */
  type(shown: string, keys: string): Promise<void>;
  /** Resolves once `shown` has appeared on the screen after the previously awaited text. */
  sees(shown: string): Promise<void>;
  /** Resolves when the program has ended. */
  status(): Promise<number | null>;
}

/** `command` is a shell command of one program, because some shells end on the ^C for the program that they run. */
export function terminal(command: string, options: { readonly cwd?: string } = {}): Terminal {
  const child = spawn("script", ["-q", "-e", "-c", `exec ${command}`, "/dev/null"], {
    ...options,
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, TERM: "xterm", COLUMNS: "100", LINES: "30" },
  });
  let screen = "";
  let seen = 0;
  child.stdout.on("data", (chunk) => (screen += String(chunk)));
  const ended = once(child, "close");
  const sees = async (shown: string) => {
    await eventually(() => screen.indexOf(shown, seen) >= 0, 30_000).catch((error: unknown) => {
      throw new Error(`not on the screen: ${shown}\n${screen.slice(seen)}`, { cause: error });
    });
    seen = screen.indexOf(shown, seen) + shown.length;
  };
  return {
    screen: () => screen,
    sees,
    async type(shown, keys) {
      await sees(shown);
      child.stdin.write(keys);
    },
    async status() {
      await ended;
      return child.exitCode;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await ended;
    },
  };
}
