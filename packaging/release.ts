// Builds the program as it is installed: one folder with bundled code and what cannot be bundled, nothing else.
// Usage: node packaging/release.ts FOLDER [amd64|arm64]
import { isAscii } from "node:buffer";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { type BuildOptions, build, type Metafile, type Plugin } from "esbuild";
import { withSlashes } from "../src/lib/files/paths.ts";
import { entryText, startFile } from "./entry.ts";
import {
  builtinsAsTheyAre,
  modbusClientAlone,
  mqttForNode,
  natsInAscii,
  undiciWithoutHttp2,
  zodInParts,
} from "./lean.ts";

export const root = resolve(import.meta.dirname, "..");

/** Debian's names of the machines that the program is built for, with the registry's. */
export const architectures = { amd64: "x64", arm64: "arm64" } as const;
export type Architecture = keyof typeof architectures;

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

/** Not in the bundle: native code (serialport), and what only `demo` in the repository has. */
const external = ["serialport", "aedes", "node-opcua-server", "proper-lockfile"];
/** Of those, what is installed beside the bundle. */
const installed = ["serialport"];

/** Draws the timeline page, in the browser: two files of it are part of the page. */
const plotLibrary = "node_modules/uplot";

/** Configurations that `browse --recipe` prints. Their fixtures are for the tests. */
const recipes = "config/recipes";

/** Fills `folder`, which is emptied first. */
export async function release(folder: string, architecture: Architecture): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  const inputs = await bundle(folder);
  writeFileSync(join(folder, "main.js"), entryText(), { mode: 0o755 });
  for (const pages of ["src/web/page", "src/service/timeline"])
    cpSync(join(root, pages), join(folder, basename(pages)), { recursive: true });
  for (const file of ["uPlot.iife.min.js", "uPlot.min.css"])
    cpSync(join(root, plotLibrary, "dist", file), join(folder, "timeline", file));
  for (const name of readdirSync(join(root, recipes)))
    cpSync(join(root, recipes, name, "recipe.yaml"), join(folder, basename(recipes), name, "recipe.yaml"));
  cpSync(join(root, "systemd"), join(folder, "systemd"), { recursive: true });
  const beside = new Set(installed.flatMap((name) => closure(name, root)));
  for (const path of beside) copyPackage(path, join(folder, relative(root, path)), architecture);
  const { name, version, license = "" } = manifest(root);
  writeFileSync(join(folder, "package.json"), `${JSON.stringify({ name, version, license, type: "module" })}\n`);
  const bundled = Object.keys(inputs).flatMap((input) => packageOf(join(root, input)) ?? []);
  writeFileSync(
    join(folder, "THIRD-PARTY.txt"),
    [licences([...new Set([...bundled, ...beside, join(root, plotLibrary)])]), ...takeLegalComments(folder)].join("\n"),
  );
}

const agentProgram = "src/cli/agent-program.ts";

/**
 * Files that are read when something needs them, by the import that names them. All else that a command or a source loads
 * is in the file that asks for it: dozens of small files take longer to find, to read and to link than to evaluate.
 */
const apart: Readonly<Record<string, string>> = {
  // Not before the flags and the cache of `main.ts` are in effect.
  "./program.ts": "src/cli/program.ts",
  "./agent-program.ts": agentProgram,
  // 2 MB for those who have an OPC UA server.
  "./stack-parts.ts": "src/source/opcua/stack/stack-parts.ts",
  // For those who have a cluster.
  "./nats-client.ts": "src/cluster/connection/nats-client.ts",
};

const filesApart: Plugin = {
  name: "files apart",
  setup(build) {
    build.onResolve({ filter: /^\.\/[\w-]+\.ts$/ }, ({ path, kind }) =>
      kind === "dynamic-import" && apart[path] ? { path: path.replace(/ts$/, "js"), external: true } : undefined,
    );
    // The simulated server has them from where it is itself.
    build.onResolve({ filter: /^node-opcua-/ }, ({ path, importer }) =>
      withSlashes(importer).includes("/src/demo/") ? { path, external: true } : undefined,
    );
  },
};

/** The agent's bundle as the text of a function, which `src/cli/shared/compiled-bundle.ts` evaluates. */
const asFunction = {
  format: "cjs",
  // Node calls `import` in such a function experimental, and warns. `require` takes modules, too.
  supported: { "dynamic-import": false },
  define: { "import.meta.url": "bundleUrl" },
  banner: { js: '(function(require,bundleUrl){"use strict";const module={};' },
  footer: { js: "return module.exports})" },
} satisfies BuildOptions;

async function bundle(folder: string): Promise<Metafile["inputs"]> {
  const options: BuildOptions = {
    absWorkingDir: root,
    entryPoints: [
      { in: "src/cli/main.ts", out: basename(startFile, ".js") },
      ...[...Object.values(apart), "src/buffer/disk/worker/disk-worker.ts", "src/service/worker/store-worker.ts"]
        .filter((file) => file !== agentProgram)
        .map((file) => ({ in: file, out: basename(file, ".ts") })),
      // Loaded by `require` with the first regular expression of a filter.
      { in: "re2js", out: "node_modules/re2js/index" },
    ],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    minify: true,
    legalComments: "external",
    outdir: folder,
    external,
    plugins: [
      filesApart,
      builtinsAsTheyAre,
      zodInParts,
      mqttForNode,
      modbusClientAlone,
      natsInAscii,
      undiciWithoutHttp2,
    ],
    metafile: true,
    logLevel: "warning",
    // Parts of the libraries are CommonJS and ask for `require`.
    banner: {
      js: 'const require=process.getBuiltinModule("node:module").createRequire(import.meta.url);',
    },
  };
  const builds = [options, { ...options, entryPoints: [agentProgram], ...asFunction }];
  const metafiles = await Promise.all(builds.map(async (each) => (await build(each)).metafile as Metafile)); // asked for above
  for (const file of readdirSync(folder))
    if (file.endsWith(".js") && !isAscii(readFileSync(join(folder, file))))
      throw new Error(
        `${file} has characters beyond ASCII, by which V8 keeps all of it in two bytes each: escape them`,
      );
  return Object.assign({}, ...metafiles.map(({ inputs }) => inputs));
}

/** Folders of a package and of all that it depends on. */
function closure(name: string, from: string, seen = new Set<string>()): readonly string[] {
  const path = find(name, from);
  if (path === undefined || seen.has(path)) return [];
  seen.add(path);
  for (const dependency of Object.keys(manifest(path).dependencies ?? {})) closure(dependency, path, seen);
  return [...seen];
}

/** Where `name` is found from the folder `from`, as Node looks for it. */
function find(name: string, from: string): string | undefined {
  const path = join(from, "node_modules", name);
  if (existsSync(join(path, "package.json"))) return path;
  return from === root ? undefined : find(name, dirname(from));
}

function copyPackage(from: string, to: string, architecture: Architecture): void {
  mkdirSync(to, { recursive: true });
  const prebuilds = join(from, "prebuilds");
  cpSync(from, to, {
    recursive: true,
    filter: (path) => {
      if (path.endsWith(".d.ts") || path.endsWith(".map")) return false;
      const within = relative(from, path).split(sep);
      // Each package of the closure is copied for itself.
      if (within[0] === "node_modules") return false;
      // Sources of native code.
      if (["src", "build", "binding.gyp"].includes(within[0] ?? "") && existsSync(prebuilds)) return false;
      return within[0] !== "prebuilds" || within.length < 2 || within[1] === `linux-${architectures[architecture]}`;
    },
  });
}

/** What the bundler has written of copyright in comments of the libraries, a file for each bundle that has any. */
function takeLegalComments(folder: string): readonly string[] {
  const files = readdirSync(folder, { encoding: "utf8", recursive: true }).filter((file) =>
    file.endsWith(".LEGAL.txt"),
  );
  const texts = new Set(files.map((file) => readFileSync(join(folder, file), "utf8")));
  for (const file of files) rmSync(join(folder, file));
  return [...texts];
}

/** Folder of the package that a bundled file comes from; undefined for our own. */
function packageOf(file: string): string | undefined {
  const match = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(withSlashes(file));
  return match?.[1] && resolve(match[1]);
}

function licences(packages: readonly string[]): string {
  const entries = packages.map((path) => {
    const { name, version, license = "see below" } = manifest(path);
    const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
    const text = file ? readFileSync(join(path, file), "utf8").trim() : "(its package carries no text of the licence)";
    return `${name} ${version}, ${license}\n\n${text}\n`;
  });
  return `tagferry contains these packages.\n\n${entries.sort().join(`\n${"-".repeat(78)}\n\n`)}`;
}

export function manifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest; // npm wrote it
}

/** `text` as an architecture, or the one of this machine. */
export function architectureOf(text: string | undefined): Architecture {
  const name = text ?? (process.arch === "arm64" ? "arm64" : "amd64");
  if (name !== "amd64" && name !== "arm64") throw new Error(`architecture must be amd64 or arm64, is ${name}`);
  return name;
}

if (import.meta.main) {
  const [folder, architecture] = process.argv.slice(2);
  if (folder === undefined) throw new Error("usage: node packaging/release.ts FOLDER [amd64|arm64]");
  await release(resolve(folder), architectureOf(architecture));
}
