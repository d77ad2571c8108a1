// A third-party server in its own process: its first line shows that it is ready, and it ends with its input.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface PeerServer extends AsyncDisposable {
  /** Its first line. */
  readonly ready: string;
  /** Sends it a line. Has no effect after it has ended. */
  tell(line: string): void;
  /** Ends it at once, as a power cut would. Resolves when it has ended. */
  kill(): Promise<void>;
}

/** Resolves with its first line. `onLine` gets the later ones. Rejects with its error output when it ends before. */
export async function peerServer(
  command: string,
  args: readonly string[],
  onLine: (line: string) => void = () => {},
): Promise<PeerServer> {
  const server = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  server.stderr.on("data", (chunk) => {
    complaint = (complaint + String(chunk)).slice(-4_000);
  });
  server.stdin.on("error", () => {});
  const ended = new Promise<never>((_, reject) => {
    server.once("error", reject);
    server.once("close", (code) => reject(new Error(`${command} ${args[0]} ended with ${code}: ${complaint}`)));
  });
  ended.catch(() => {});
  const lines = createInterface(server.stdout);
  const first = new Promise<string>((resolve) => {
    lines.once("line", (line) => {
      lines.on("line", onLine);
      resolve(line);
    });
  });
  return {
    ready: await Promise.race([first, ended]),
    tell: (line) => {
      server.stdin.write(`${line}\n`);
    },
    async kill() {
      server.kill("SIGKILL");
      await ended.catch(() => {});
    },
    async [Symbol.asyncDispose]() {
      server.stdin.end();
      await ended.catch(() => {});
    },
  };
}
