// Finds the agent of a configuration for commands that connect to it. Other parts of the file may be invalid.
import type { Environment } from "./files/environment.ts";
import { dataDirOf, readTextFile } from "./files/environment.ts";
import { replaceReferences } from "./files/references.ts";
import { parseYaml } from "./files/yaml-file.ts";
import type { Config } from "./format/config.ts";
import { agentOptions, httpOptions } from "./format/file-schema.ts";
import { checkNode } from "./nodes/check-node.ts";
import { Issues } from "./nodes/issue.ts";
import { childNode } from "./nodes/node.ts";

export interface AgentPlace extends Pick<Config["http"], "listen" | "token" | "readToken" | "tls"> {
  /** Absolute path. */
  readonly dataDir: string;
}

/** Undefined: the file cannot be read or the sections are invalid; `loadConfig` reports why. */
export async function agentPlace(file: string, environment: Environment): Promise<AgentPlace | undefined> {
  const ignored = new Issues();
  const text = await readTextFile(file, { at: { file, line: 1, column: 1 }, path: "" }, environment, ignored);
  const root = text === undefined ? undefined : parseYaml(text, file, ignored);
  if (root?.kind !== "map") return undefined;
  const empty = { ...root, entries: new Map() };
  const section = async (name: string) => {
    const node = childNode(root, name);
    return node?.kind === "map" ? await replaceReferences(node, environment, ignored) : empty;
  };
  const http = checkNode(httpOptions, await section("http"), ignored);
  const agent = checkNode(agentOptions, await section("agent"), ignored);
  if (!http || !agent || ignored.errors > 0) return undefined;
  const { listen, token, readToken, tls } = http;
  return { listen, token, readToken, tls, dataDir: dataDirOf(agent.dataDir, file, environment) };
}
