// What the local service can be told: where to listen, where to keep data, who may call, and how it behaves under load.
import { z } from "zod";
import { AgentError } from "../core/errors.ts";
import { byteSize, duration, listenAddress, secret } from "../lib/fields.ts";
import { integrationId } from "../wire/identifiers.ts";
import { grants } from "../wire/method.ts";

export const integrationOptions = z
  .strictObject({
    id: integrationId.describe("Integration ID; also the user name of basic authentication."),
    password: secret().optional().describe("Password of basic authentication."),
    clientId: z.string().min(1).optional().describe("Client credentials: the client's name."),
    clientSecret: secret().optional().describe("Client credentials: the client's secret."),
    grants: z.array(z.enum(grants)).default([]).describe("Namespaces that the integration may use beside its own."),
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

export const serviceOptions = z.strictObject({
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
    .enum(["queue", "reject", "off"])
    .default("queue")
    .describe("What becomes of calls above the rate: wait, get HTTP 429, or run at once."),
  maxInsert: byteSize({ min: 1_024 }).optional().describe("Size limit of integration.insert (default 8MiB)."),
  retention: duration({ min: 60_000 }).optional().describe("Points older than this are deleted (default: kept)."),
});

export type ServiceOptions = z.output<typeof serviceOptions>;
export type IntegrationOptions = z.output<typeof integrationOptions>;

/** Flags of `tagferry service`, as commander hands them out. */
export interface ServiceFlags {
  readonly listen?: string | undefined;
  readonly data?: string | undefined;
  readonly integration?: string | undefined;
  readonly password?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  /** Comma-separated. */
  readonly grant?: string | undefined;
  readonly namespace?: string | undefined;
  readonly throttle?: string | undefined;
  readonly maxInsert?: string | undefined;
  readonly retention?: string | undefined;
}

/** Throws `CONFIG_INVALID` that names every wrong flag. */
export function optionsFromFlags(flags: ServiceFlags): ServiceOptions {
  const integration = defined({
    id: flags.integration,
    password: flags.password,
    clientId: flags.clientId,
    clientSecret: flags.clientSecret,
    grants: flags.grant
      ?.split(",")
      .map((grant) => grant.trim())
      .filter((grant) => grant !== ""),
  });
  const parsed = serviceOptions.safeParse(
    defined({
      listen: flags.listen ?? "127.0.0.1:8420",
      data: flags.data,
      integrations: [integration],
      namespace: flags.namespace,
      throttle: flags.throttle,
      maxInsert: flags.maxInsert,
      retention: flags.retention,
    }),
  );
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map(({ path, message }) => `${flagOf(path)}: ${message}`);
  throw new AgentError("CONFIG_INVALID", lines.join("\n"));
}

function defined(members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** The flag that a place in the options comes from. */
function flagOf(path: readonly PropertyKey[]): string {
  const [first, , member] = path.map(String);
  const name = first === "integrations" ? (member === "grants" ? "grant" : (member ?? "id")) : (first ?? "");
  return `--${(name === "id" ? "integration" : name).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
