// Options of an MQTT source, next to `tags`, and their checks.
import { z } from "zod";
import type { SecurityFinding } from "../../../core/commissioning.ts";
import type { Claim, ConfigWarning, SourceOwner } from "../../../core/driver.ts";
import { leavesMachine } from "../../../lib/network/listen.ts";
import { byteSize, duration, secret } from "../../../lib/values/fields.ts";

const brokerUrl = z.string().refine((text) => /^(mqtts?|wss?):\/\/[^\s/@]+(\/\S*)?$/.test(text) && URL.canParse(text), {
  error:
    "must be the address of a broker, as in mqtt://broker.local:1883, mqtts://broker.local:8883 or wss://broker.local/mqtt; name and password stand in username and password",
});

const text = (meaning: string) => z.string().min(1).optional().describe(meaning);

const session = z.strictObject({
  persistent: z
    .boolean()
    .default(true)
    .describe("The broker keeps the subscriptions and queues QoS 1 messages while the agent is away."),
  expiry: duration({ min: 1_000 })
    .prefault("24h")
    .describe(
      "How long the broker keeps the session after the connection ended (MQTT 5; older brokers have a setting of their own).",
    ),
  receiveMaximum: z
    .int()
    .min(1)
    .max(65_535)
    .default(2_000)
    .describe("How many messages the broker may send before the first of them is acknowledged (MQTT 5)."),
});

export const mqttOptions = z
  .strictObject({
    url: brokerUrl.describe("Address of the broker: mqtt, mqtts, ws or wss.").meta({
      examples: ["mqtts://broker.local:8883", "wss://broker.local/mqtt"],
    }),
    servers: z
      .array(brokerUrl)
      .default([])
      .describe("Further addresses, tried in this order when the ones before do not answer or refuse."),
    username: z.string().optional().describe("User name at the broker."),
    password: secret().optional().describe("Password at the broker; may be empty."),
    passwordFile: text(
      "File with the password instead, read again at each connection: for passwords and tokens that change.",
    ),
    clientId: text(
      "Identifies the session at the broker, so it must be stable and used once. Default: <agent.name>-<source name>.",
    ),
    qos: z
      .literal([0, 1, 2])
      .default(1)
      .describe("QoS asked for in subscriptions. Messages published with QoS 0 stay unprotected whatever stands here."),
    session: session.prefault({}).describe("The session at the broker."),
    keepalive: duration({ min: 1_000, max: 65_535_000 })
      .prefault("60s")
      .describe(
        "Silence after which the broker is asked whether it is still there; down after one and a half times that.",
      ),
    connectTimeout: duration({ min: 100, max: 600_000 })
      .prefault("10s")
      .describe("How long connecting and the broker's answers to subscriptions may take."),
    protocolVersion: z
      .literal(["auto", 5, 4, 3])
      .default("auto")
      .describe("auto: 5, and if the broker does not speak it 4 (MQTT 3.1.1), then 3 (MQTT 3.1)."),
    maxPayload: byteSize({ min: 1, max: 268_435_455 })
      .prefault("1MiB")
      .describe("Larger payloads are skipped while they arrive: acknowledged and counted, never in memory as a whole."),
    caFile: text("PEM file with the certificate authorities to trust instead of the system's."),
    certFile: text("PEM file with the agent's certificate, for mutual TLS."),
    keyFile: text("PEM file with the key to certFile."),
    keyPassphrase: secret().optional().describe("Passphrase of keyFile."),
    verify: z
      .enum(["full", "ca", "none"])
      .default("full")
      .describe(
        "What is checked of the broker's certificate: full issuer and name, ca the issuer alone, none nothing, so that anybody can pass for the broker.",
      ),
    alpn: z
      .array(z.string())
      .default([])
      .describe("Names for ALPN, where a cloud broker on port 443 asks for one.")
      .meta({ examples: [["x-amzn-mqtt-ca"]] }),
    serverName: text("Name expected in the broker's certificate where it differs from the host in url."),
    requestRebirth: z
      .boolean()
      .default(true)
      .describe(
        "Sparkplug B: edge nodes that we do not know yet, or whose messages got lost, are asked to introduce themselves again. It is the one message that is ever published.",
      ),
  })
  .superRefine(({ password, passwordFile }, context) => {
    if (password !== undefined && passwordFile !== undefined)
      context.addIssue({ code: "custom", path: ["passwordFile"], message: "must not be set together with password" });
  });

export type MqttOptions = z.output<typeof mqttOptions>;

// Checks of connection options: whether two sources claim one session, and how the connection is protected.

const usualPorts: Readonly<Record<string, string>> = { "mqtt:": "1883", "mqtts:": "8883", "ws:": "80", "wss:": "443" };

export function clientIdOf({ clientId }: Pick<MqttOptions, "clientId">, { agent, source }: SourceOwner): string {
  return clientId ?? `${agent}-${source}`;
}

/** Sessions of a source. A broker disconnects a client when another one uses its client identifier. */
export function claimedSessions(options: MqttOptions, owner: SourceOwner): readonly Claim[] {
  const clientId = clientIdOf(options, owner);
  const brokers = [options.url, ...options.servers].map(brokerOf);
  const ends = "the broker ends the connection of one whenever the other connects";
  const another =
    "give one of them another clientId (default: <agent.name>-<source name>, so two agents need two names)";
  const claims = (places: readonly string[], hint: string, uncertain: boolean) =>
    [...new Set(places)].map((place) => ({
      key: JSON.stringify([place, clientId]),
      field: "clientId",
      message: `is client identifier ${clientId} at ${place}`,
      hint,
      uncertain,
    }));
  const ports = brokers.map(({ host, port }) => `${host}:${port}`);
  const hosts = brokers.map(({ host }) => host);
  return [
    ...claims(ports, `${ends}; ${another}`, false),
    ...claims(hosts, `if both ports belong to one broker, ${ends}: ${another}`, true),
  ];
}

/** Host and port in a normal form. */
function brokerOf(url: string): { readonly host: string; readonly port: string } {
  const { protocol, hostname, port } = new URL(url.toLowerCase());
  const host = /^(localhost|\[::1\])$/.test(hostname) ? "127.0.0.1" : hostname;
  return { host, port: port === "" ? (usualPorts[protocol] ?? "") : port };
}

/** Warnings about options that let others read or falsify the traffic. */
export function connectionWarnings(options: MqttOptions): readonly ConfigWarning[] {
  const { url, servers, password, passwordFile, verify } = options;
  const urls = [url, ...servers];
  const warnings: ConfigWarning[] = [];
  if ((password ?? passwordFile) !== undefined && urls.some(isClear))
    warnings.push({
      field: "url",
      message: "is not encrypted: the password and all messages can be read by anyone on the network",
      hint: "mqtts:// or wss:// where the broker offers it, with caFile where its authority is your own",
    });
  // Without verification, any machine on the path can impersonate the broker.
  if (verify === "none" && urls.some(isTls))
    warnings.push({
      field: "verify",
      message:
        "is none: the certificate of the broker is not verified, so another machine can impersonate it and read the password and all messages",
      hint: "verify: full, with caFile for the certificate of the issuer and serverName where the certificate has another name",
    });
  return warnings;
}

function isTls(url: string): boolean {
  return /^(mqtts|wss):/i.test(url);
}

function isClear(url: string): boolean {
  return /^(mqtt|ws):/i.test(url) && leavesMachine(url);
}

/** As `Driver.findings`. */
export function connectionFindings({ url, verify }: Pick<MqttOptions, "url" | "verify">): readonly SecurityFinding[] {
  const remedy = "mqtts:// or wss:// where the broker offers it";
  if (!isTls(url))
    return leavesMachine(url)
      ? [{ state: "weak", message: "not encrypted", remedy }]
      : [{ state: "good", message: "not encrypted, and it does not leave this machine" }];
  const unverified = "TLS, but the certificate of the broker is not verified";
  if (verify === "none") return [{ state: "weak", message: unverified, remedy: "verify: full, with caFile" }];
  const checked = verify === "ca" ? "the issuer is verified, the name is not" : "issuer and name are verified";
  return [{ state: "good", message: `TLS; ${checked}` }];
}
