// Converts the flags and the configuration file of the command line to options.
import { readFile } from "node:fs/promises";
import { isNode, LineCounter, parseDocument } from "yaml";
import type { z } from "zod";
import { AgentError } from "../../core/errors.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { defined } from "../../lib/values/defined.ts";
import { integrationOptions, type LocalServiceOptions, localServiceOptions } from "./options.ts";

type TextFlag =
  | ("config" | "listen" | "data" | "integration" | "password" | "clientId" | "clientSecret" | "grant" | "namespace")
  | ("throttle" | "maxInsert" | "retention" | "tlsCert" | "tlsKey");

/**
 * Flags of `tagferry service` as parsed by commander. `config`: YAML or JSON file with the members of `localServiceOptions`;
 * flags override it. `grant`: comma-separated; left out: both; empty: none.
 */
export type ServiceFlags = { readonly [Flag in TextFlag]?: string | undefined } & {
  readonly [Flag in "cors" | "fault"]?: string | readonly string[] | undefined;
};

/** Rejects with `CONFIG_INVALID`, naming every invalid flag and member. */
export async function optionsFromFlags(flags: ServiceFlags): Promise<LocalServiceOptions> {
  const { file, at } = flags.config === undefined ? { file: {} } : await readConfig(flags.config);
  const { listen, data, namespace, throttle, maxInsert, retention, tlsCert, tlsKey } = flags;
  const integrations = flags.integration === undefined ? undefined : [integrationOf(flags)];
  const single = { listen, data, namespace, throttle, maxInsert, retention, tlsCert, tlsKey };
  const given: Readonly<Record<string, unknown>> = defined({
    ...single,
    integrations,
    faults: listOf(flags.fault),
    cors: listOf(flags.cors),
  });
  const parsed = localServiceOptions.safeParse({ listen: "127.0.0.1:8420", ...file, ...given }, { error: wording });
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(({ message, ...issue }) => {
    const path = issue.code === "unrecognized_keys" ? [...issue.path, ...issue.keys.slice(0, 1)] : issue.path;
    const [first = ""] = path.map(String);
    if (first === "integrations" && !(first in given) && !(first in file)) return "--integration: must be given";
    if (at && !(first in given) && (first === "" || first in file)) return `${at(path)}  ${message}`;
    const value = path.length === 1 ? given[first] : undefined;
    const found = typeof value === "string" ? `, is ${value}` : "";
    return `${flagOf(path)}: ${message}${found}`;
  });
  throw new AgentError("CONFIG_INVALID", lines.join("\n"));
}

/** What zod would not say in these words. */
function wording(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== "unrecognized_keys") return issue.input === undefined ? "must be given" : undefined;
  const known = Object.keys((issue.path?.length ? integrationOptions : localServiceOptions).shape);
  return `unknown key ${issue.keys.join(", ")}; may be ${known.join(", ")}`;
}

function integrationOf(flags: ServiceFlags): object {
  return defined({
    id: flags.integration,
    password: flags.password,
    clientId: flags.clientId,
    clientSecret: flags.clientSecret,
    grants: flags.grant
      ?.split(",")
      .map((grant) => grant.trim())
      .filter((grant) => grant !== ""),
  });
}

/** `at`: where a member stands, or what lacks it: `service.yaml:2:5  integrations.0.id`. */
async function readConfig(path: string) {
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new AgentError("CONFIG_INVALID", `cannot read ${path}: ${fileProblem(cause)}`, { cause });
  });
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines });
  if (document.errors.length > 0)
    throw new AgentError(
      "CONFIG_INVALID",
      document.errors
        .map(({ pos, message }) => {
          const { line, col } = lines.linePos(pos[0]);
          return `${path}:${line}:${col}  ${message.split("\n")[0]}`;
        })
        .join("\n"),
    );
  const value: unknown = document.toJS();
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new AgentError("CONFIG_INVALID", `${path} must hold a mapping`);
  const at = (member: readonly PropertyKey[]) => {
    let depth = member.length;
    while (depth > 0 && !document.hasIn(member.slice(0, depth))) depth--;
    const node = document.getIn(member.slice(0, depth), true);
    const { line, col } = lines.linePos((isNode(node) && node.range?.[0]) || 0);
    return `${path}:${line}:${col}  ${member.join(".")}`;
  };
  const file: Readonly<Record<string, unknown>> = Object.fromEntries(Object.entries(value));
  return { file, at };
}

function listOf(flag: string | readonly string[] | undefined): readonly string[] | undefined {
  return typeof flag === "string" ? [flag] : flag;
}

/** The flag that sets this member of the options. */
function flagOf(path: readonly PropertyKey[]): string {
  const [first = "", , member = "id"] = path.map(String);
  const renamed: Readonly<Record<string, string>> = { id: "integration", grants: "grant", faults: "fault" };
  const name = first === "integrations" ? member : first;
  return `--${(renamed[name] ?? name).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
