// Reads the declarations of metrics from the source code.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { withSlashes } from "../../src/lib/files/paths.ts";

const root = resolve(import.meta.dirname, "../../src");

export interface DeclaredMetric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly labels: readonly string[];
  readonly help: string;
}

function declaredIn(file: string): readonly DeclaredMetric[] {
  const text = readFileSync(file, "utf8");
  // Several declarations may share the constant `labels` of their file.
  const shared = words(/const labels = \[([^\]]*)\]/.exec(text)?.[1]);
  const declaration =
    /(?:name:\s*"([a-z0-9_]+)",\s*help:|\[\s*"(\w+_total)",)\s*"([^"]*)",?\s*(?:labels(?:: \[([^\]]*)\])?)?,?\s*(buckets)?/g;
  return [...text.matchAll(declaration)].map(([whole, alone, inTable, help = "", own, buckets]) => ({
    name: `tagferry_${alone ?? inTable}`,
    kind: buckets ? "histogram" : inTable !== undefined || alone?.endsWith("_total") ? "counter" : "gauge",
    // The rows of a table, `[name, help]`, use the labels of their file.
    labels: own === undefined ? (inTable !== undefined || /labels[,\s]*$/.test(whole) ? shared : []) : words(own),
    help: help.replace(/\.$/, ""),
  }));
}

const words = (list = "") => [...list.matchAll(/"(\w+)"/g)].map(([, word = ""]) => word);

/** Every metric of the agent, by name. */
export function declaredMetrics(): readonly DeclaredMetric[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !withSlashes(file).startsWith("service/"))
    .flatMap((file) => declaredIn(join(root, file)))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}
