// `include`: sources and templates in separate files.
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { fileProblem, withSlashes } from "../../lib/files/paths.ts";
import { unknownKeys } from "../nodes/check-node.ts";
import type { Issues } from "../nodes/issue.ts";
import { type ConfigNode, childNode, type MapEntry, type MapNode, type ScalarNode } from "../nodes/node.ts";
import { type Environment, readTextFile } from "./environment.ts";
import { replaceReferences } from "./references.ts";
import { parseYaml } from "./yaml-file.ts";

const included = ["version", "sources", "templates"];

/** `root` with the sources and templates of all included files, in the order of the file names. */
export async function readIncludes(root: MapNode, environment: Environment, issues: Issues): Promise<MapNode> {
  const named = childNode(root, "include");
  if (!named) return root;
  const entries = new Map(root.entries);
  entries.delete("include");
  for (const pattern of named.kind === "list" ? named.items : [named]) {
    if (pattern.kind !== "scalar" || pattern.value === null) {
      issues.error(pattern, "must be a file, a pattern such as conf.d/*.yaml, or a list of them");
      continue;
    }
    for (const file of await filesOf(pattern, environment, issues)) {
      const text = await readTextFile(file, pattern, environment, issues);
      const node = text === undefined ? undefined : parseYaml(text, file, issues);
      if (node?.kind === "map") addTo(entries, await replaceReferences(node, environment, issues), issues);
      else if (node) issues.error(node, "must be a map with sources or templates");
    }
  }
  return { ...root, entries };
}

function addTo(entries: Map<string, MapEntry>, file: MapNode, issues: Issues): void {
  unknownKeys(file, included, issues);
  for (const section of ["sources", "templates"]) {
    const added = file.entries.get(section);
    if (!added || added.value.kind !== "map") {
      const isEmpty = added?.value.kind === "scalar" && added.value.value === null;
      if (added && !isEmpty) issues.error(added.value, "must be a map of names");
      continue;
    }
    const before = entries.get(section);
    const names = new Map(before?.value.kind === "map" ? before.value.entries : []);
    for (const [name, entry] of added.value.entries) {
      const first = names.get(name)?.key;
      if (first)
        issues.error(
          { at: entry.key, path: entry.value.path },
          `stands here twice, first in ${first.file}:${first.line}`,
        );
      else names.set(name, entry);
    }
    const whole: ConfigNode = { ...added.value, entries: names };
    entries.set(section, before ? { ...before, value: whole } : { key: added.key, value: whole });
  }
}

/** The files that match a pattern. Only the last part of a path may contain `*`. */
async function filesOf(pattern: ScalarNode, environment: Environment, issues: Issues): Promise<readonly string[]> {
  const path = isAbsolute(pattern.text) ? pattern.text : join(dirname(pattern.at.file), pattern.text);
  const [folder, name] = [dirname(path), basename(path)];
  if (pattern.text.split("/").includes("..") || folder.includes("*")) {
    issues.error(pattern, "must name files below this one, with * in the last part only", "as in conf.d/*.yaml");
    return [];
  }
  if (!name.includes("*")) return [withSlashes(path)];
  const matching = new RegExp(`^${name.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`, "s");
  try {
    const names = await environment.listFolder(resolve(environment.cwd, folder));
    return names
      .filter((found) => matching.test(found) && !found.startsWith("."))
      .toSorted()
      .map((found) => withSlashes(join(folder, found)));
  } catch (error) {
    issues.error(pattern, `${folder} cannot be read: ${fileProblem(error)}`, "create the folder, or correct include");
    return [];
  }
}
