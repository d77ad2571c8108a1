// Options of the local service: address, data folder, integrations, and behaviour under load. They come from flags, a file,
// or the program that opens a service.
import { readFile } from "node:fs/promises";
import { isNode, LineCounter, parseDocument } from "yaml";
import { z } from "zod";
import { AgentError } from "../../core/errors.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { defined } from "../../lib/values/defined.ts";
import { byteSize, duration, listenAddress, secret, unfit } from "../../lib/values/fields.ts";
import { grants } from "../../wire/method.ts";
import { integrationId } from "../../wire/signal-view.ts";
import { parseFault } from "./fault.ts";

export const integrationOptions = z
  .strictObject({
    id: integrationId.describe("Integration ID; also the user name of basic authentication."),
    password: secret().optional().describe("Password of basic authentication."),
    clientId: z.string().min(1).optional().describe("Client credentials: the client's name."),
    clientSecret: secret().optional().describe("Client credentials: the client's secret."),
    grants: z
      .array(z.enum(grants, { error: "must be admin or platform" }))
      .default([...grants])
      .describe("Namespaces that the integration may use in addition to its own."),
  })
  .superRefine(({ password, clientId, clientSecret }, context) => {
    if ((clientId === undefined) !== (clientSecret === undefined))
      context.addIssue({
        code: "custom",
        message: "clientId and clientSecret must be given together",
        input: clientId,
      });
    else if (password === undefined && clientId === undefined)
      context.addIssue({ code: "custom", message: "must have a password or client credentials", input: password });
  });

export const localServiceOptions = z
  .strictObject({
    listen: listenAddress().describe("Address of the service, as in 127.0.0.1:8420."),
    data: z
      .string({ error: "must be given: a folder, or :memory: to keep nothing" })
      .min(1)
      .describe("Folder of the data; `:memory:` keeps nothing."),
    integrations: z.array(integrationOptions).min(1),
    namespace: z
      .string()
      .regex(/^[A-Za-z][A-Za-z0-9]*$/, { error: "must be a word of letters and digits" })
      .refine((name) => !["integration", "admin"].includes(name.toLowerCase()), {
        error: "is the name of another namespace",
      })
      .default("platform")
      .describe("Prefix of the platform methods."),
    throttle: z
      .enum(["queue", "reject", "off"], { error: "must be queue, reject or off" })
      .default("queue")
      .describe("What becomes of calls above the rate: wait, get HTTP 429, or run at once."),
    maxInsert: byteSize({ min: 1_024 }).optional().describe("Size limit of integration.insert (default 8MiB)."),
    tlsCert: z
      .string()
      .min(1)
      .optional()
      .describe("File with the certificate of the service, and those above it (PEM)."),
    tlsKey: z.string().min(1).optional().describe("File with its private key (PEM)."),
    cors: z
      .array(
        z.string().refine((text) => text === "*" || (/^https?:/.test(text) && URL.parse(text)?.origin === text), {
          error: "must be an origin, as in https://dashboards.example.com, or *",
        }),
      )
      .optional()
      .describe("Origins of web pages that may call the service; * is every one."),
    faults: z
      .array(
        z.string().transform((text, context) => {
          const fault = parseFault(text);
          return typeof fault === "string" ? unfit(context, `${JSON.stringify(text)} ${fault}`, text) : fault;
        }),
      )
      .optional()
      .describe("Faults to cause, for drills: delay=2s,method=insert,rate=0.1"),
    retention: duration({ min: 60_000 }).optional().describe("Points older than this are deleted (default: kept)."),
  })
  .superRefine(({ tlsCert, tlsKey }, context) => {
    if ((tlsCert === undefined) === (tlsKey === undefined)) return;
    const path = [tlsCert === undefined ? "tlsCert" : "tlsKey"];
    context.addIssue({ code: "custom", message: "tlsCert and tlsKey must be given together", path, input: undefined });
  });

export type LocalServiceOptions = z.output<typeof localServiceOptions>;
export type IntegrationOptions = z.output<typeof integrationOptions>;

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

/** Messages that replace those of zod. */
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

/** `at`: the place of a member, or of the mapping that lacks it: `service.yaml:2:5  integrations.0.id`. */
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
