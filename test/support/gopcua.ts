// gopcua as a peer: an OPC UA server in Go. Needs Go to download the module.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import type { Counted } from "./open62541.ts";
import { peerProgram } from "./peer-program.ts";
import { peerServer } from "./peer-server.ts";

const run = promisify(execFile);

export interface GopcuaOptions {
  readonly port?: number;
  /** PEM files. With them it offers security and accepts any user name without checking the password. */
  readonly identity?: { readonly certificateFile: string; readonly keyFile: string };
}

export interface Gopcua extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sets a variable below `Objects/Line`: Temp or Count, both Double. */
  set(name: "Temp" | "Count", value: number): void;
  count(): Promise<Counted>;
}

/** The path of the compiled server. */
export function gopcuaProgram(): Promise<string> {
  const folder = join(import.meta.dirname, "gopcua");
  const sources = ["go.mod", "go.sum", "main.go"].map((name) => join(folder, name));
  return peerProgram("gopcua", sources, async (_, output) => {
    // Without cgo it is a single file that runs on any machine.
    const env = { ...process.env, CGO_ENABLED: "0" };
    await run("go", ["build", "-buildvcs=false", "-o", output, "."], { cwd: folder, env });
  });
}

/** Resolves when it answers. Rejects when it cannot be built. */
export async function gopcua({ port, identity }: GopcuaOptions = {}): Promise<Gopcua> {
  const program = await gopcuaProgram();
  if (port !== undefined) return await gopcuaOn(port, program, identity);
  return await onFreePorts(1, ([free = 0]) => gopcuaOn(free, program, identity));
}

async function gopcuaOn(port: number, program: string, identity: GopcuaOptions["identity"]): Promise<Gopcua> {
  const waiting: ((counted: Counted) => void)[] = [];
  const files = identity ? [identity.certificateFile, identity.keyFile] : [];
  const server = await peerServer(program, [String(port), ...files], (line) => {
    const [, sessions = Number.NaN, subscriptions = Number.NaN] = line.split(" ").map(Number);
    waiting.shift()?.({ sessions, subscriptions });
  });
  const bound = Number(server.ready);
  return {
    port: bound,
    url: `opc.tcp://127.0.0.1:${bound}`,
    set: (name, value) => server.tell(`set ${name} ${value}`),
    count: () =>
      new Promise((resolve) => {
        waiting.push(resolve);
        server.tell("count");
      }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
