// A program on a real terminal: a pseudo-terminal of util-linux's `script`, typed at as a person would.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { eventually } from "./eventually.ts";

export interface Terminal extends AsyncDisposable {
  /** Everything that was shown so far, with what steers the terminal. */
  screen(): string;
  /** Types `keys` once `shown` is on the screen, after what was waited for before. */
  type(shown: string, keys: string): Promise<void>;
  /** Resolves once `shown` is on the screen, after what was waited for before. */
  sees(shown: string): Promise<void>;
  /** Resolves when the program has ended. */
  status(): Promise<number | null>;
}

/** `command` as a shell takes it, one program: some shells end by the ^C that is meant for what they run. */
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
