// The `service:` block of the configuration: destination, credentials and limits.
import { z } from "zod";
import { Secret } from "../../core/secret.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { byteSize, duration, secret } from "../../lib/values/fields.ts";
import { apiVersions } from "../../wire/method.ts";
import { integrationId, keyPattern } from "../../wire/signal-view.ts";

const mebibyte = 2 ** 20;

const basic = z.strictObject({
  username: z
    .string()
    .min(1)
    .refine((name) => !name.includes(":"), "must not contain a colon: the header ends the name there")
    .optional()
    .describe("Defaults to the Integration ID."),
  password: secret().describe("Password of the integration. Better a reference than the password itself."),
});

const clientCredentials = z.strictObject({
  file: z.string().min(1).describe("Credentials file as the service hands it out (JSON). Read again when it changes."),
  tokenUrl: z
    .url({ protocol: /^https?$/, error: "must be an http or https address" })
    .optional()
    .describe("Where tokens come from; defaults to <apiUrl of the file>/oauth/token."),
});

const auth = z
  .strictObject({
    basic: basic.optional().describe("HTTP basic authentication."),
    clientCredentials: clientCredentials.optional().describe("Tokens, from a credentials file."),
  })
  .superRefine(({ basic: password, clientCredentials: file }, context) => {
    if ((password === undefined) === (file === undefined))
      context.addIssue({ code: "custom", message: "must have exactly one of basic and clientCredentials" });
  })
  .describe("How the agent proves who it is.");

const plain = ["name", "description", "engUnit", "labels", "sampleInterval", "gapDetection"] as const;

/** Examples: `name`, `engUnit`, `labels`, `labels.site`. */
export const qualityRule = z
  .string()
  .refine(
    (text) => plain.some((name) => name === text) || (text.startsWith("labels.") && keyPattern.test(text.slice(7))),
    { error: `must be ${plain.join(", ")} or labels.<key>` },
  );

const signals = z.strictObject({
  save: z
    .enum(["onChange", "never"])
    .default("onChange")
    .describe(
      "onChange: metadata of a signal is saved before its first points and whenever it changes. never: not at all.",
    ),
  createOnly: z.boolean().default(false).describe("True: signals that the service has already are left as they are."),
  check: z
    .union([z.literal("off"), duration({ min: 60_000, max: 604_800_000 })])
    .prefault("1h")
    .describe(
      "How often signals are compared with what the service has, so that those lost or changed there are saved again. Needs the grant of the Admin namespace and apiVersion 1.1beta1 or later; without them nothing is compared.",
    )
    .meta({ examples: ["1h", "off"] }),
  publish: z
    .enum(["off", "createOnly", "update"])
    .default("off")
    .describe(
      "Whether signals are published to items, which needs the grant of the Admin namespace. off: people do that. createOnly: items that exist are left as they are. update: they follow their signals, but never where a person has edited them.",
    ),
  require: z
    .array(qualityRule)
    .default(["name", "engUnit", "labels"])
    .describe(
      "What must be known of a signal before it is published: name, description, engUnit, labels, labels.<key>, sampleInterval, gapDetection. For an enumeration engUnit means enumValues.",
    )
    .meta({ examples: [["name", "engUnit", "labels.site"], []] }),
});

const limits = z.strictObject({
  requestsPerSecond: z
    .number()
    .min(0.01)
    .max(1)
    .default(1)
    .describe("Bound for each method that writes. The service allows 1; set less to leave room for other clients."),
  maxRequest: byteSize({ min: 64 * 1024, max: 9 * mebibyte })
    .optional()
    .describe("Largest request, uncompressed. Defaults to the limit of method and apiVersion."),
});

const service = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: "must be an http or https address, as in https://api.example.com/v1" })
    .refine((url) => !/^https?:\/\/[^/?#]*@/i.test(url), "must not hold a name or password, which stand in auth")
    .refine((url) => !/^https?:\/{3}/i.test(url), "must name a host, as in https://api.example.com/v1")
    .refine((url) => !/[?#]/.test(url), "must have no query or fragment")
    .refine((url) => !/\/v1\/rpc\/?$/.test(url), "must be the base address: /rpc is appended to it")
    .describe("Base address of the service; requests go to {url}/rpc."),
  apiVersion: z.enum(apiVersions).default("1.1beta1").describe("Dialect, sent as X-API-Version."),
  integration: integrationId.describe("Integration ID: whose signals these are."),
  namespace: z
    .string()
    .regex(/^[a-z][a-zA-Z0-9]*$/, "must be letters and digits, as in platform")
    .default("platform")
    .describe("Prefix of the platform methods."),
  confirmation: z
    .enum(["named", "status"])
    .default("named")
    .describe(
      "When points count as delivered. named: the answer names their input. status: also when a successful answer names no input at all, for a service that never does; what such a service drops without an error is lost.",
    ),
  maxLag: duration({ min: 1_000, max: 3_600_000 })
    .prefault("10s")
    .describe("Bound on how late fresh points may be while a backlog drains, beyond interval."),
  interval: duration({ min: 1_000, max: 3_600_000 })
    .prefault("1s")
    .describe(
      "How often points are sent. A longer interval saves bytes where a connection is metered, since each request and answer names every signal once. What one request cannot carry follows at once.",
    )
    .meta({ examples: ["60s"] }),
  proxy: z
    .url({ protocol: /^https?$/, error: "must be the http or https address of a proxy" })
    .transform((url) => new Secret(url))
    .optional()
    .describe(
      "HTTP proxy for all requests. If the address contains a password, store the whole address outside the file and refer to it.",
    ),
  caFile: z.string().min(1).optional().describe("PEM file with the authorities to trust instead of the built-in ones."),
  auth,
  signals: signals.prefault({}).describe("What happens to the metadata of signals."),
  limits: limits.prefault({}).describe("Lower bounds than the service's own."),
});

export const serviceOptions = service.superRefine(({ apiVersion, signals: { publish } }, context) => {
  if (apiVersion === "1.0" && publish !== "off")
    context.addIssue({
      code: "custom",
      path: ["signals", "publish"],
      message: "must be off: apiVersion 1.0 has no method to publish, 1.1beta1 has",
      input: publish,
    });
});

/** The parsed `service:` block. Times in milliseconds, sizes in bytes. */
export type ServiceOptions = z.output<typeof serviceOptions>;

/** The rules that `signal` does not meet. Enumerations need names of states instead of a unit. */
export function unmetRules(signal: PartialSignalMetadata, rules: readonly string[]): readonly string[] {
  return rules.flatMap((rule) => {
    const wanted = rule === "engUnit" && signal.type === "enum" ? "enumValues" : rule;
    return isPresent(signal, wanted) ? [] : [wanted];
  });
}

function isPresent(signal: PartialSignalMetadata, rule: string): boolean {
  if (rule.startsWith("labels.")) return (signal.labels?.[rule.slice(7)] ?? []).some((text) => text !== "");
  const value = Object.entries(signal).find(([name]) => name === rule)?.[1];
  if (typeof value === "string") return value.trim() !== "";
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
