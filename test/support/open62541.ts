// open62541 as a peer: an OPC UA server in C, as many devices contain it. Needs cargo, whose registry has the source,
// CMake, a C compiler and OpenSSL.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, rename, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { peerCache, peerProgram } from "./peer-program.ts";
import { peerServer } from "./peer-server.ts";

const run = promisify(execFile);
/** The package that contains the source of open62541 1.5.10 in its folder `open62541`. */
const source = { name: "open62541-sys", version: "0.6.6" } as const;

export interface Open62541Options {
  readonly port?: number;
  readonly mostSessions?: number;
  readonly mostSubscriptions?: number;
  /** The shortest publishing interval in milliseconds. */
  readonly fastestPublishing?: number;
  /** DER files. With them it offers security, and the user `reader` with the password `rope`. */
  readonly identity?: { readonly certificateFile: string; readonly keyFile: string };
}

export interface Counted {
  readonly sessions: number;
  readonly subscriptions: number;
}

export interface Open62541 extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  /** Sets a variable below `Objects/Line`: Temp or Count, both Double. */
  set(name: "Temp" | "Count", value: number): void;
  /** The counts of its own diagnostics. */
  count(): Promise<Counted>;
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>;
}

/** Resolves when it answers. Rejects when it cannot be built. */
export async function open62541(options: Open62541Options = {}): Promise<Open62541> {
  const { port = 0, mostSessions = 0, mostSubscriptions = 0, fastestPublishing = 0, identity } = options;
  const program = await open62541Program();
  const waiting: ((counted: Counted) => void)[] = [];
  const numbers = [port, mostSessions, mostSubscriptions, fastestPublishing].map(String);
  const files = identity ? [identity.certificateFile, identity.keyFile] : [];
  const server = await peerServer(program, [...numbers, ...files], (line) => {
    const [, sessions, subscriptions] = line.split(" ").map(Number);
    waiting.shift()?.({ sessions: sessions ?? Number.NaN, subscriptions: subscriptions ?? Number.NaN });
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
    kill: () => server.kill(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

/** The path of the compiled server. */
export function open62541Program(): Promise<string> {
  const server = join(import.meta.dirname, "open62541/server.c");
  return peerProgram(`open62541-${source.version}`, [server], async (making, output) => {
    const library = join(peerCache, `open62541-library-${source.version}`);
    if (!existsSync(library)) await buildLibrary(making, library);
    const include = ["include", "generated"].map((folder) => `-I${join(library, folder)}`);
    const archive = join(library, "libopen62541.a");
    await run("cc", ["-O1", "-o", output, server, ...include, archive, "-lssl", "-lcrypto", "-lm", "-lpthread"]);
  });
}

/** Downloads the source with cargo, without building it there, and compiles the library. */
async function buildLibrary(making: string, library: string): Promise<void> {
  const manifest = join(making, "Cargo.toml");
  await writeFile(
    manifest,
    `[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n${source.name} = "=${source.version}"\n`,
  );
  await mkdir(join(making, "src"), { recursive: true });
  await writeFile(join(making, "src/lib.rs"), "");
  const { stdout } = await run("cargo", ["metadata", "--format-version", "1", "--manifest-path", manifest], {
    maxBuffer: 64 * 1024 * 1024,
  });
  // the format of cargo
  const { packages } = JSON.parse(stdout) as { packages: { name: string; manifest_path: string }[] };
  const found = packages.find(({ name }) => name === source.name)?.manifest_path ?? "";
  const tree = join(found, "../open62541");
  const build = join(making, "build");
  const options = {
    CMAKE_BUILD_TYPE: "Release",
    UA_ENABLE_ENCRYPTION: "OPENSSL",
    UA_ENABLE_DIAGNOSTICS: "ON",
    UA_NAMESPACE_ZERO: "REDUCED",
    BUILD_SHARED_LIBS: "OFF",
  };
  const defines = Object.entries(options).map(([name, value]) => `-D${name}=${value}`);
  await run("cmake", ["-S", tree, "-B", build, ...defines], { maxBuffer: 64 * 1024 * 1024 });
  await run("cmake", ["--build", build, "-j", String(availableParallelism())], { maxBuffer: 64 * 1024 * 1024 });
  const made = join(making, "library");
  await mkdir(join(made, "include"), { recursive: true });
  await copyFile(join(build, "bin/libopen62541.a"), join(made, "libopen62541.a"));
  await rename(join(build, "src_generated"), join(made, "generated"));
  for (const folder of ["include", "plugins/include"])
    await run("cp", ["-r", `${join(tree, folder)}/.`, join(made, "include")]);
  await rename(made, library).catch(() => {});
}
