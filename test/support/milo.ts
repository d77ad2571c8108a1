// Eclipse Milo as a peer: an OPC UA server in Java on a third-party stack. Needs a JDK (17) and Maven.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { peerServer } from "./peer-server.ts";

export interface MiloOptions {
  /** Keys and certificates. The same folder gives the same server certificate. */
  readonly folder: string;
  readonly port?: number;
  /** Namespaces before that of the line, which change its index. */
  readonly before?: readonly string[];
}

export interface Milo extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sets a variable below `Objects/Line`. `time`: source timestamp in seconds since 1970, to the microsecond. */
  set(name: string, value: number | bigint | boolean | string, time?: number): void;
  /** `NAME VALUE` for each value that every item monitoring the variable has received so far. */
  readonly held: ReadonlySet<string>;
  /** Makes the server trust a client. `certificateFile`: PEM. */
  trust(certificateFile: string): void;
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>;
}

/** Resolves when it answers. Rejects when Java, Maven or its packages are not available. */
export async function milo({ port, ...options }: MiloOptions): Promise<Milo> {
  const program = await miloProgram();
  if (port !== undefined) return await miloOn(port, program, options);
  return await onFreePorts(1, ([free = 0]) =>
    miloOn(free, program, options).catch((cause: unknown) => {
      // Milo does not say why it could not bind any of its endpoints.
      throw /No endpoints bound/.test(String(cause)) ? new Error("address in use", { cause }) : cause;
    }),
  );
}

async function miloOn(port: number, program: string, { folder, before = [] }: MiloOptions): Promise<Milo> {
  const classPath = `${join(program, "classes")}:${join(program, "lib", "*")}`;
  const held = new Set<string>();
  const server = await peerServer(
    "java",
    ["-Xmx256m", "-cp", classPath, "MiloServer", folder, String(port), ...before],
    (line) => {
      if (line.startsWith("held ")) held.add(line.slice("held ".length));
    },
  );
  const bound = Number(server.ready);
  return {
    port: bound,
    url: `opc.tcp://127.0.0.1:${bound}`,
    held,
    set: (name, value, time = Date.now() / 1_000) => server.tell(`set ${name} ${value} ${time.toFixed(6)}`),
    trust: (certificateFile) => server.tell(`trust ${certificateFile}`),
    kill: () => server.kill(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The folder of the compiled server in the user's cache. Compiles it if the cache has no build of this source. */
export async function miloProgram(): Promise<string> {
  const source = join(import.meta.dirname, "milo");
  const pom = join(source, "pom.xml");
  const parts = await Promise.all([pom, join(source, "src/main/java/MiloServer.java")].map((file) => readFile(file)));
  const digest = createHash("sha256").update(Buffer.concat(parts)).digest("hex").slice(0, 12);
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tagferry-peers");
  const folder = join(cache, `milo-${digest}`);
  if (existsSync(folder)) return folder;
  // Renamed when complete, because two test files may build it at the same time.
  const making = `${folder}.${process.pid}`;
  await mkdir(cache, { recursive: true });
  await promisify(execFile)("mvn", ["-q", "-B", "-f", pom, `-DbuildDirectory=${making}`, "process-classes"]);
  await rename(making, folder).catch(() => rm(making, { recursive: true, force: true }));
  return folder;
}
