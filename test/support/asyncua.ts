// asyncua as a peer: an OPC UA server on a stack that is not ours.
import { join } from "node:path";
import { peerServer } from "./peer-server.ts";
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
  const waiting = new Map<number, () => void>();
  const server = await peerServer(python, [script, JSON.stringify(options)], (line) => {
    const { held } = JSON.parse(line) as { held: number }; // our own script's words
    waiting.get(held)?.();
    waiting.delete(held);
  });
  const { port } = JSON.parse(server.ready) as { port: number }; // our own script's words
  let ids = 0;
  return {
    port,
    url: `opc.tcp://127.0.0.1:${port}`,
    set: (name, value, time = Date.now() / 1_000) =>
      new Promise((resolve) => {
        const id = ++ids;
        waiting.set(id, resolve);
        server.tell(JSON.stringify({ name, value, time, id }));
      }),
    kill: () => server.kill(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
