// Loads a configuration for a test, with its own environment and files.
import { basename, dirname } from "node:path";
import type { Environment } from "../../src/config/files/environment.ts";
import type { Config } from "../../src/config/format/config.ts";
import { configIssues, loadConfig } from "../../src/config/load.ts";
import { formatIssue } from "../../src/config/nodes/issue.ts";

/** An absolute path as Linux writes it, without the drive and backslashes of Windows. */
const posix = (path: string) => path.replace(/^[A-Z]:/, "").replaceAll("\\", "/");

/** An environment with only these variables and files. Files are given by absolute path. */
export function environmentOf(
  variables: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Environment {
  const contents = new Map(Object.entries(files).map(([path, content]) => [posix(path), content]));
  return {
    hostname: "north.gw",
    cwd: "/site",
    variables,
    async listFolder(path) {
      const names = [...contents.keys()].filter((file) => dirname(file) === posix(path));
      if (names.length === 0) throw Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
      return names.map((file) => basename(file));
    },
    async readFile(path) {
      const content = contents.get(posix(path));
      if (content === undefined) throw Object.assign(new Error(`ENOENT: ${path}`), { code: "ENOENT" });
      return typeof content === "string" ? new TextEncoder().encode(content) : content;
    },
  };
}

/** Loads `text` as /site/agent.yaml. */
export function load(
  text: string | Uint8Array,
  variables: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<Config> {
  return loadConfig("agent.yaml", environmentOf(variables, { ...files, "/site/agent.yaml": text }));
}

/** The errors of `text` as `check` prints them; empty if there are none. */
export async function complaints(...given: Parameters<typeof load>): Promise<string> {
  try {
    const { warnings } = await load(...given);
    return warnings.map(formatIssue).join("\n");
  } catch (error) {
    const issues = configIssues(error);
    if (issues.length === 0) throw error;
    return issues.map(formatIssue).join("\n");
  }
}

/** The required sections of every configuration, with a password by reference. */
export const head = `version: 1
service: { url: http://127.0.0.1:8420/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: "\${PASSWORD}" } } }
`;
export const withPassword = { PASSWORD: "canary-7f3a" };
