// asyncua as a peer: an OPC UA server on a third-party stack.
import { join } from "node:path";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { peerServer } from "./peer-server.ts";
import { pythonWith } from "./python.ts";

export interface AsyncuaOptions {
  /** Keys and certificates. The same folder gives the same server certificate. */
  readonly folder: string;
  readonly port?: number;
  /** Also offers endpoints with security; default true. */
  readonly secure?: boolean;
  /** Variables whose history it keeps in memory. */
  readonly history?: readonly string[];
}

export interface Asyncua extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /**
   * Sets a variable below `Objects/Line`. `time`: source timestamp in seconds since 1970, to the microsecond. Resolves
   * when the value is in the queue of every item that monitors the variable; never if the server ends before.
   */
  set(name: string, value: unknown, time?: number): Promise<void>;
  /** Current numbers of sessions and subscriptions. */
  count(): Promise<{ readonly sessions: number; readonly subscriptions: number }>;
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>;
}

/** Resolves when it answers. Rejects when Python or the package is not available. */
export async function asyncua(options: AsyncuaOptions): Promise<Asyncua> {
  const python = await pythonWith("asyncua==2.1.0");
  if (options.port !== undefined) return await asyncuaOn(python, options);
  return await onFreePorts(1, ([port = 0]) => asyncuaOn(python, { ...options, port }));
}

async function asyncuaOn(python: string, options: AsyncuaOptions): Promise<Asyncua> {
  const script = join(import.meta.dirname, "asyncua-server.py");
  const waiting = new Map<number, () => void>();
  const counting = new Map<number, (counted: Said) => void>();
  const server = await peerServer(python, [script, JSON.stringify(options)], (line) => {
    const said = JSON.parse(line) as Said; // printed by the project's own script
    counting.get(said.counted ?? 0)?.(said);
    waiting.get(said.held ?? 0)?.();
    waiting.delete(said.held ?? 0);
  });
  const { port } = JSON.parse(server.ready) as { port: number }; // printed by the project's own script
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
    count: () =>
      new Promise((resolve) => {
        const id = ++ids;
        counting.set(id, ({ sessions = Number.NaN, subscriptions = Number.NaN }) =>
          resolve({ sessions, subscriptions }),
        );
        server.tell(JSON.stringify({ count: id }));
      }),
    kill: () => server.kill(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** A line that the script prints. */
interface Said {
  readonly held?: number;
  readonly counted?: number;
  readonly sessions?: number;
  readonly subscriptions?: number;
}
