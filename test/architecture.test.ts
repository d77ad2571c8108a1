// Enforces the layers: a file imports from its own part or from a lower layer, and parts of one layer are independent.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative as platformRelative, resolve } from "node:path";
import { expect, test } from "vitest";
import { withSlashes } from "../src/lib/files/paths.ts";

const root = resolve(import.meta.dirname, "../src");
const relative = (from: string, to: string) => withSlashes(platformRelative(from, to));

/** Every protocol is a part: a folder of `source`. */
const protocols = readdirSync(join(root, "source"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `source/${name}`);

/** Layers of `src`, lowest first. A part is named by its folder; the last layer may import everything. */
const floors: readonly (readonly string[])[] = [
  ["core"],
  ["lib", "wire"],
  ["cluster"],
  [...protocols, "mapping", "buffer/disk", "upload"],
  // It uses the codec and the settled ranges of the disk buffer.
  ["buffer/jetstream"],
  ["source"],
  ["config"],
  ["discover"],
  ["agent"],
  ["web"],
  ["cli"],
];
/** Parts next to the layers: only `cli` imports them, and they import only these. */
const towers: Readonly<Record<string, readonly string[]>> = {
  service: ["core", "lib", "wire"],
  demo: ["core", "lib", "wire"],
};

function partOf(file: string): string {
  const [first = "", second = ""] = relative(root, file).split("/");
  return (first === "source" || first === "buffer") && !second.endsWith(".ts") ? `${first}/${second}` : first;
}

const floorOf = (part: string) => floors.findIndex((floor) => floor.includes(part));

function allowed(from: string, to: string): boolean {
  if (from === to || from === "cli") return true;
  const tower = towers[from];
  if (tower) return tower.includes(to);
  return floorOf(to) >= 0 && floorOf(to) < floorOf(from);
}

const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts"))
  .map((name) => join(root, name));

const imports = files.flatMap((file) =>
  [...readFileSync(file, "utf8").matchAll(/(?:from\s+|import\s*\(?\s*|new URL\(\s*)["'](\.{1,2}\/[^"']+)["']/g)].map(
    (match) => ({
      file,
      target: resolve(dirname(file), match[1] ?? ""),
    }),
  ),
);

test("every part of src stands on a floor", () => {
  const unknown = [...new Set(files.map(partOf))].filter((part) => floorOf(part) < 0 && !(part in towers));
  expect(unknown).toEqual([]);
});

test("only the registry imports a protocol", () => {
  const wrong = imports
    .filter(({ file, target }) => protocols.includes(partOf(target)) && partOf(file) !== partOf(target))
    .map(({ file, target }) => `${relative(root, file)} imports ${relative(root, target)}`);
  expect(wrong.toSorted()).toEqual(
    protocols.toSorted().map((part) => expect.stringMatching(`^source/registry.ts imports ${part}/driver.ts$`)),
  );
});

test("imports only go down", () => {
  const wrong = imports
    .filter(({ file, target }) => !allowed(partOf(file), partOf(target)))
    .map(({ file, target }) => `${relative(root, file)} imports ${relative(root, target)}`);
  expect(wrong).toEqual([]);
});

/** A folder inside a part is a room. The files next to the rooms belong to the part itself. */
function roomOf(file: string): string {
  const part = partOf(file);
  const inside = relative(join(root, part), file).split("/");
  return inside.length > 1 ? `${part}/${inside[0]}` : part;
}

/** For each room, the rooms of the same part that its files import, including types. */
function roomImports(): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { file, target } of imports) {
    if (!target.endsWith(".ts") || partOf(file) !== partOf(target) || roomOf(file) === roomOf(target)) continue;
    found.set(roomOf(file), (found.get(roomOf(file)) ?? new Set()).add(roomOf(target)));
  }
  return found;
}

test("the rooms of a part do not import each other in a circle, nor the files next to them", () => {
  const edges = roomImports();
  const reach = (room: string, seen = new Set<string>()): Set<string> => {
    for (const next of edges.get(room) ?? [])
      if (!seen.has(next)) {
        seen.add(next);
        reach(next, seen);
      }
    return seen;
  };
  const circles = [...edges.keys()].filter((room) => reach(room).has(room));
  expect(circles).toEqual([]);
});

test("the README of a part names each of its rooms", () => {
  const rooms = new Set(files.map(roomOf).filter((room) => room !== partOf(join(root, room, "x.ts"))));
  const unnamed = [...rooms].filter((room) => {
    const readme = join(root, dirname(room), "README.md");
    return !existsSync(readme) || !readFileSync(readme, "utf8").includes(`${basename(room)}/`);
  });
  expect(rooms.size).toBeGreaterThan(40);
  expect(unnamed).toEqual([]);
});

test("sources, mapping and upload know nothing of the cluster", () => {
  const unaware = (file: string) => [...protocols, "source", "mapping", "upload"].includes(partOf(file));
  const wrong = imports.filter(({ file, target }) => unaware(file) && partOf(target) === "cluster");
  expect(wrong).toEqual([]);
});

test("the NATS client is imported by src/cluster/connection/nats-*.ts alone, and loaded only when it connects", () => {
  const named = (pattern: RegExp) =>
    files.filter((file) => pattern.test(readFileSync(file, "utf8"))).map((file) => relative(root, file));
  expect(named(/["']@nats-io\//).filter((name) => !/^cluster\/connection\/nats-[\w-]+\.ts$/.test(name))).toEqual([]);
  expect(named(/^import (?!type\b)[^;]*["']@nats-io\//m)).toEqual([]);
});

test("core imports nothing but types", () => {
  const wrong = files
    .filter((file) => partOf(file) === "core")
    .flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/^import (?!type\b).*$/gm)].map(
        (match) => `${relative(root, file)}: ${match[0]}`,
      ),
    );
  expect(wrong).toEqual([]);
});

test("the process is ended in cli/main.ts alone", () => {
  const wrong = files
    .filter((file) => /\bprocess\.exit\(/.test(readFileSync(file, "utf8")))
    .map((file) => relative(root, file));
  expect(wrong.filter((name) => name !== "cli/main.ts")).toEqual([]);
});

test("no two files export the same name", () => {
  const exporters = new Map<string, Set<string>>();
  for (const file of files)
    for (const [, name = ""] of readFileSync(file, "utf8").matchAll(
      /^export (?:async )?(?:abstract )?(?:const|function\*?|class|interface|type|enum) (\w+)/gm,
    ))
      exporters.set(name, (exporters.get(name) ?? new Set()).add(relative(root, file)));
  const twice = [...exporters].filter(([, all]) => all.size > 1);

  expect(exporters.size).toBeGreaterThan(500);
  expect(twice.map(([name, all]) => `${name}: ${[...all].join(", ")}`)).toEqual([]);
});
