// asyncua as a peer: an OPC UA server on a stack that is not ours.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pythonWith } from "./python.ts";

export interface AsyncuaOptions {
  /** Keys and certificates; the same folder gives the same server certificate. */
  readonly folder: string;
  readonly port?: number;
  /** Variables whose history it keeps, in memory. */
  readonly history?: readonly string[];
}

export interface Asyncua extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /**
   * Sets a variable below `Objects/Line`. `time`: source time, in seconds since 1970 with microseconds. Resolves when it is
   * in the queue of every item that monitors the variable; never when the server ends before.
   */
  set(name: string, value: unknown, time?: number): Promise<void>;
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>;
}

/** Resolves when it answers. Rejects when Python or the package cannot be had. */
export async function asyncua(options: AsyncuaOptions): Promise<Asyncua> {
  const python = await pythonWith("asyncua==2.1.0");
  const script = join(import.meta.dirname, "asyncua-server.py");
  const server = spawn(python, [script, JSON.stringify(options)], { stdio: ["pipe", "pipe", "pipe"] });
  let complaint = "";
  server.stderr.on("data", (chunk) => {
    complaint = (complaint + String(chunk)).slice(-4_000);
  });
  server.stdin.on("error", () => {});
  const ended = new Promise<never>((_, reject) => {
    server.once("error", reject);
    server.once("exit", (code) => reject(new Error(`asyncua ended with ${code}: ${complaint}`)));
  });
  ended.catch(() => {});
  const lines = createInterface(server.stdout);
  const first = new Promise<string>((resolve) => lines.once("line", resolve));
  const ready: unknown = JSON.parse(await Promise.race([first, ended]));
  const { port } = ready as { port: number }; // our own script's words
  const waiting = new Map<number, () => void>();
  let ids = 0;
  lines.on("line", (line) => {
    const { held } = JSON.parse(line) as { held: number }; // our own script's words
    waiting.get(held)?.();
    waiting.delete(held);
  });
  return {
    port,
    url: `opc.tcp://127.0.0.1:${port}`,
    set: (name, value, time = Date.now() / 1_000) =>
      new Promise((resolve) => {
        const id = ++ids;
        waiting.set(id, resolve);
        server.stdin.write(`${JSON.stringify({ name, value, time, id })}\n`);
      }),
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
