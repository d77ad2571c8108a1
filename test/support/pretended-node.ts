import { writeFileSync } from "node:fs";
import type { TemporaryFolder } from "./temporary-folder.ts";

/** Arguments of Node with which `process.version` reports another version. */
export function pretendedNode(folder: TemporaryFolder, version: string): readonly string[] {
  const file = folder.file(`pretend-${version}.cjs`);
  const versions = `Object.assign({}, process.versions, { node: "${version}" })`;
  writeFileSync(
    file,
    `Object.defineProperty(process, "versions", { value: ${versions} });
Object.defineProperty(process, "version", { value: "v${version}" });`,
  );
  return ["-r", file];
}
