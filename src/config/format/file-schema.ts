// The general sections of the file. Sources, service and buffer define their own.
import { z } from "zod";
import { bufferOptions } from "../../buffer/disk/options.ts";
import { clusterOptions } from "../../cluster/connection/options.ts";
import { holdsUser } from "../../lib/text/without-secrets.ts";
import { duration, listenAddress, secret } from "../../lib/values/fields.ts";
import { tagOptions } from "../../mapping/options.ts";
import { serviceOptions } from "../../upload/client/options.ts";

const agentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, { error: "must be 1 to 64 letters, digits, - _ and ." });

export const agentOptions = z.strictObject({
  name: agentName
    .optional()
    .describe(
      "Name of this agent in logs, metrics, the status page and its own signals, and in the client identifiers it uses. Must differ between agents of one plant. Default: the name of the machine.",
    )
    .meta({ examples: ["north-gw1"] }),
  dataDir: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder for the buffer, learned state and certificates. Default: $STATE_DIRECTORY, which systemd sets; /var/lib/tagferry for /etc/tagferry/tagferry.yaml; else ./data.",
    )
    .meta({ examples: ["/var/lib/tagferry"] }),
  unsyncedClock: z
    .enum(["hold", "write"])
    .default("hold")
    .describe(
      "What becomes of readings that this machine stamps while its clock is not set: before 2025, behind the last run of the agent (for 2 minutes at most), or not yet synchronised on a machine without a hardware clock (for 1 minute at most). hold: they wait in memory and get their right times; write: they are stored as they are.",
    ),
  ownSignals: z
    .union([
      z.literal("off"),
      z.strictObject({
        every: duration({ min: 1_000, max: 3_600_000 })
          .prefault("10s")
          .describe("How often they are measured; what does not change noticeably is stored every 5 minutes."),
      }),
    ])
    .prefault({})
    .describe(
      "Signals of the agent itself, delivered like any tag under <name>/tagferry/: sources online, readings a second, delivery lag and backlog, points refused and dropped, buffer, memory, CPU, and the cluster where there is one.",
    ),
});

const shortestToken = 16;

export const httpOptions = z.strictObject({
  listen: listenAddress()
    .prefault("127.0.0.1:8421")
    .describe(
      "Where the status page, /metrics, /healthz, /readyz and /api/status are served. :8421 takes all addresses.",
    ),
  allowedHosts: z
    .array(z.string().min(1))
    .default([])
    .describe(
      "Host names under which the page is served, in addition to localhost, addresses and the name in listen. A browser that comes by another name is refused: it was led here by a stranger's page.",
    )
    .meta({ examples: [["gw1.plant.local"]] }),
  token: secret()
    .refine((token) => token.reveal().length >= shortestToken, {
      error: `must have at least ${shortestToken} characters: anyone who guesses it may reload the agent`,
    })
    .optional()
    .describe(
      "With this token a client may change the agent over HTTP, as tagferry reload does from another machine. Without it, changes need read access to control.token in the data directory.",
    ),
  readToken: secret()
    .refine((token) => token.reveal().length >= shortestToken, {
      error: `must have at least ${shortestToken} characters: anyone who guesses it may read all values`,
    })
    .optional()
    .describe(
      "Without it every client that reaches the port may read the page, /api and /metrics. Programs send it as a bearer token, browsers as the password of any user. /healthz and /readyz need none.",
    ),
  tls: z
    .strictObject({
      certFile: z
        .string()
        .min(1)
        .describe("PEM file with the certificate of this agent, and those between it and its authority."),
      keyFile: z.string().min(1).describe("PEM file with the key to certFile. A changed file is used after a restart."),
    })
    .optional()
    .describe("Serves the page, /metrics and /api over TLS 1.2 or later, at https:// instead of http://."),
});

const otlpOptions = z.strictObject({
  url: z
    .url({ protocol: /^https?$/, error: "must be an http or https address, as in https://collector.example.com:4318" })
    .refine((url) => !holdsUser(url), "must not hold a name or password, which stand in headers")
    .refine(
      (url) => !/\/v1\/(metrics|logs|traces)\/?$/.test(url),
      "must be the base address: /v1/metrics and /v1/logs are appended to it",
    )
    .describe("Base address of the collector; requests go to {url}/v1/metrics and {url}/v1/logs."),
  headers: z
    .record(z.string().regex(/^[A-Za-z0-9-]{1,64}$/, { error: "must be the name of an HTTP header" }), secret())
    .default({})
    .describe("Headers of each request, such as authorization. Their values are secrets.")
    .meta({ examples: [{ authorization: "${credential:otlp_authorization}" }] }),
  every: duration({ min: 5_000, max: 3_600_000 })
    .prefault("60s")
    .describe("How often metrics and waiting log lines are sent."),
  metrics: z.boolean().default(true).describe("Whether metrics are exported, those of /metrics."),
  logs: z.boolean().default(true).describe("Whether log lines are exported, those that log.level permits."),
  caFile: z.string().min(1).optional().describe("PEM file with the authorities to trust instead of the built-in ones."),
});

const logOptions = z.strictObject({
  level: z
    .enum(["debug", "info", "warn", "error"])
    .default("info")
    .describe("The least important lines that are written."),
});

/** Tag options that `defaults`, sources and devices may set for their tags. */
export const cascadedOptions = tagOptions.omit({ input: true, shared: true });
export const cascadedKeys: readonly string[] = Object.keys(cascadedOptions.shape);

/** Source names are also used as folder names. */
export const sourceName = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/, { error: "must be 1 to 64 letters, digits, - _ and ." });

export const formatVersion = z.literal(1, { error: "must be 1, the version of this file's format" });

/** Independently validated sections, in the order of the reference. */
export const sections = {
  agent: agentOptions.prefault({}).describe("This agent."),
  service: serviceOptions.describe("The service that points are delivered to."),
  buffer: bufferOptions.prefault({}).describe("The buffer on disk."),
  http: httpOptions.prefault({}).describe("Status page and metrics."),
  log: logOptions.prefault({}).describe("The log."),
  otlp: otlpOptions
    .optional()
    .describe("Export of metrics and log lines to an OpenTelemetry collector, for agents that no server can reach."),
  cluster: clusterOptions
    .optional()
    .describe(
      "NATS JetStream cluster that several agents of one integration share: one of them delivers for all. Without it this agent delivers by itself.",
    ),
};

export const runOption = z
  .union([
    // Joined by "or" in the message.
    z.enum(["here", "anywhere", "preferHere"], { error: "must be here, anywhere, preferHere" }),
    z.strictObject(
      { prefer: agentName },
      { error: ({ code }) => (code === "invalid_type" ? "must be { prefer: NODE }" : undefined) },
    ),
  ])
  .default("here")
  .describe(
    "Which agent of a cluster reads the source. here: each agent that has it in its configuration. The others: one of those that have it; another one takes over within 10 s. preferHere: this agent while it runs. prefer: the agent of that name while it runs, for a file that is the same on all machines.",
  );

export const fileKeys: readonly string[] = [
  "version",
  ...Object.keys(sections),
  "defaults",
  "templates",
  "sources",
  "include",
];
