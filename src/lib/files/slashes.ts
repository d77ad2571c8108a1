import { sep } from "node:path";

/** A path as configurations, documents and imports write it: with slashes on every platform. */
export function withSlashes(path: string): string {
  return path.split(sep).join("/");
}
