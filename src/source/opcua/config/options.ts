// Schemas and defaults of the options of an OPC UA source and of its tags.
import { z } from "zod";
import type { DriverConfig } from "../../../core/driver.ts";
import { defaultTimeRule, timeRuleFields } from "../../../lib/readings/device-time.ts";
import { securityModes } from "../../../lib/text/security-mode.ts";
import { duration, parsedText, secret, unfit } from "../../../lib/values/fields.ts";
import { parseField } from "../types/structure.ts";

export const securityPolicies = ["None", "Basic256Sha256", "Aes128_Sha256_RsaOaep", "Aes256_Sha256_RsaPss"] as const;
/** Insecure policies; used only if the configuration names them. */
export const deprecatedPolicies = ["Basic128Rsa15", "Basic256"] as const;

function faultIn(context: z.RefinementCtx) {
  return (key: string, message: string, input: unknown) =>
    context.addIssue({ code: "custom", path: [key], message, input });
}

const security = z
  .strictObject({
    mode: z.enum(securityModes).describe("`none` sends everything in clear text, and is never chosen by itself"),
    policy: z
      .enum([...securityPolicies, ...deprecatedPolicies])
      .optional()
      .describe(
        "default: the strongest the server offers in this mode; Basic128Rsa15 and Basic256 are deprecated and never chosen by themselves",
      ),
    serverCertificate: z
      .string()
      .min(1)
      .optional()
      .describe(
        "file with the server's certificate, PEM or DER: with mode and policy, for a server whose endpoints cannot be listed; it is trusted as any other",
      ),
  })
  .superRefine((value, context) => {
    const fault = faultIn(context);
    if (value.serverCertificate !== undefined && (value.mode === "none" || value.policy === undefined))
      fault("serverCertificate", "requires policy, and a mode other than none", value.serverCertificate);
    if (value.policy === undefined || (value.policy === "None") === (value.mode === "none")) return;
    const message =
      value.mode === "none"
        ? "must be None or left out where mode is none"
        : `must not be None where mode is ${value.mode}; write mode: none to go without security`;
    fault("policy", message, value.policy);
  });

const subscription = z.strictObject({
  publishing: duration({ min: 10, max: 3_600_000 })
    .optional()
    .describe("publishing interval; default: the shortest `every` of the tags, from 100ms to 1s"),
  keepAlive: duration({ min: 100, max: 600_000 })
    .default(10_000)
    .describe("longest silence of the server while nothing changes; default 10s"),
  lifetime: duration({ min: 1_000, max: 86_400_000 })
    .default(1_800_000)
    .describe("how long the server keeps the subscription while the agent cannot be reached; default 30m"),
  bridge: duration({ max: 3_600_000 })
    .default(30_000)
    .describe("interruption that the server's queues shall bridge; `queue: auto` is computed from it; default 30s"),
  queue: z
    .union([z.literal("auto"), z.int().min(1).max(100_000)])
    .default("auto")
    .describe("values the server keeps for each tag until they are fetched; default auto, from 2 to 1000"),
});

const url = z.string().transform((text, context) => {
  const match = /^opc\.tcp:\/\/(\[[0-9a-fA-F:.]+\]|[^/?#@:[\]\s]+)(?::(\d{1,5}))?(\/\S*)?$/.exec(text);
  const message = "must be an address as in opc.tcp://10.0.3.5:4840 (without user name; the port defaults to 4840)";
  if (!match || Number(match[2] ?? 4840) > 65_535) return unfit(context, message, text);
  return `opc.tcp://${match[1]}:${match[2] ?? 4840}${match[3] ?? ""}`;
});

const stamping = z.enum(["source", "server", "arrival"]);

/** Options of a source of type `opcua`. Parsed durations are in milliseconds. */
export const opcuaOptions = z
  .strictObject({
    url: url.describe("address of the server, as in opc.tcp://10.0.3.5:4840"),
    servers: z
      .array(url)
      .max(9)
      .default([])
      .describe(
        "further servers of a redundant set that offer the same nodes; the one with the best ServiceLevel is used and kept",
      ),
    security: security.optional().describe("default: the best the server offers, never none"),
    username: z.string().min(1).optional().describe("default: anonymous"),
    password: secret().optional(),
    userCertificate: z
      .strictObject({
        certFile: z.string().min(1).describe("file with the user's certificate, PEM or DER"),
        keyFile: z.string().min(1).describe("PEM file with its key"),
        keyPassphrase: secret().optional().describe("passphrase of keyFile"),
      })
      .optional()
      .describe("log in with a certificate instead of a user name"),
    allowInsecurePassword: z
      .boolean()
      .default(false)
      .describe(
        "send the password even where nothing encrypts it, or encrypted for a server whose certificate is not verified; default false",
      ),
    endpointHost: z
      .enum(["keep", "server"])
      .default("keep")
      .describe(
        "which host to connect to: the one of `url` (keep), or the one the server names (server); default keep",
      ),
    timeout: duration({ min: 500, max: 300_000 }).default(15_000).describe("bound of every call; default 15s"),
    session: z
      .strictObject({
        timeout: duration({ min: 60_000, max: 86_400_000 })
          .default(600_000)
          .describe("how long the server keeps the session while the agent cannot be reached; default 10m"),
      })
      .prefault({}),
    subscription: subscription.prefault({}),
    time: z
      .union([
        stamping,
        z.strictObject({
          clock: stamping.default("source").describe("which clock stamps the values; default source"),
          ...timeRuleFields,
        }),
      ])
      .default("source")
      .transform((given) => (typeof given === "string" ? { ...defaultTimeRule, clock: given } : given))
      .describe(
        "which clock stamps the values: source, server or arrival; source falls back to server where it is missing or not usable; default source",
      )
      .meta({ examples: ["server", { clock: "source", maxAhead: "1h" }] }),
    mode: z
      .enum(["subscribe", "poll"])
      .default("subscribe")
      .describe(
        "poll reads each tag every `every` instead of subscribing; default subscribe, and poll where the server refuses",
      ),
    backfill: z
      .union([z.literal("off"), z.strictObject({ maxGap: duration({ min: 1_000, max: 31_536_000_000 }) })])
      .default({ maxGap: 86_400_000 })
      .describe("fill gaps from the server's history where it keeps one, at most `maxGap` back; default 1d"),
  })
  .superRefine((options, context) => {
    const fault = faultIn(context);
    const { userCertificate, username, password } = options;
    if (userCertificate !== undefined && username !== undefined)
      fault(
        "userCertificate",
        "must not be set together with username: a login uses one of them",
        userCertificate.certFile,
      );
    if (password !== undefined && username === undefined) fault("password", "must not stand without username", "***");
    if (username !== undefined && password === undefined)
      fault("username", "requires a password (may be empty)", username);
  });

/** Dead band applied by the server, in the variable's unit or in percent of its EURange. */
export interface Deadband {
  readonly kind: "absolute" | "percent";
  readonly value: number;
}

const nodeId =
  /^(?:ns=\d+;|nsu=[^;]+;)?(?:i=\d+|s=[\s\S]+|g=[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|b=[A-Za-z0-9+/]+=*)$/;

const wrongIndex = 'must be the number of an element from 0, or one for each dimension of a matrix, as in "1,2"';
const wrongDeadband =
  "must be a number in the server's unit, as in 0.5, or a part of the variable's range, as in \"1%\"";

export const opcuaTag = z
  .strictObject({
    node: z
      .string()
      .regex(nodeId, { error: "must be a NodeId as in nsu=urn:plc:line3;s=Temp, ns=3;s=Temp, ns=2;i=1001 or i=2258" })
      .optional()
      .describe("NodeId: nsu=urn:plc:line3;s=Temp (survives a restart of the server), or ns=3;s=Temp"),
    path: z
      .string()
      .regex(/^[^*]*[^*/][^*]*$/, {
        error: "must be a browse path from Objects, as in Line3/Drive/Speed; with wildcards it is `browse`",
      })
      .optional()
      .describe("browse path from Objects: Line3/Drive/Speed, or with namespaces 2:Plc/2:Oven"),
    browse: z
      .string()
      .regex(/[^/]/, { error: "must be a browse path with wildcards, as in Line3/Motors/**" })
      .optional()
      .describe(
        "every variable that a browse path with wildcards finds: * for one level, ** for any; fills {name} and {path}",
      ),
    index: z
      .union([z.int().min(0).max(1_000_000), z.string().regex(/^\d{1,7}(?:,\d{1,7})+$/, wrongIndex)], wrongIndex)
      .transform((given) => (typeof given === "number" ? [given] : given.split(",").map(Number)))
      .optional()
      .describe('element of an array, from 0; of a matrix "1,2": row 1, column 2'),
    field: parsedText(
      (text) => parseField(text) ?? "be the way to a field of a structure, as in Temp, Motor.Speed or Axes[2].Position",
    )
      .optional()
      .describe("field of a structure: Motor.Speed, Axes[2].Position; `&.` is a dot within a name"),
    deadband: z
      .union([z.number().min(0), z.string().regex(/^\d+(?:\.\d+)?\s*%$/, wrongDeadband)], wrongDeadband)
      .transform(
        (given): Deadband =>
          typeof given === "number"
            ? { kind: "absolute", value: given }
            : { kind: "percent", value: Number.parseFloat(given) },
      )
      .optional()
      .describe(
        'changes that the server keeps to itself: 0.5 in its unit, or "1%" of its range; where it cannot, all come and `report` applies',
      ),
    trigger: z
      .enum(["value", "timestamp"])
      .optional()
      .describe("timestamp: a value comes again where it has another time, although it is the same; default value"),
    limit: z.int().min(1).max(100_000).optional().describe("most variables that `browse` may find; default 1000"),
  })
  .superRefine((tag, context) => {
    const given = [tag.node, tag.path, tag.browse].filter((field) => field !== undefined).length;
    if (given !== 1)
      context.addIssue({ code: "custom", message: "must have exactly one of node, path and browse", input: tag });
    if (tag.limit !== undefined && tag.browse === undefined) faultIn(context)("limit", "requires browse", tag.limit);
  });

export type OpcuaOptions = z.output<typeof opcuaOptions>;

export interface OpcuaConfig extends DriverConfig<typeof opcuaOptions, typeof opcuaTag> {
  /** The agent's data directory, set for a probe whose user may not store certificates there. */
  readonly forbiddenDir?: string;
}
