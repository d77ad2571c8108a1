// Options of an MQTT source, next to `tags`.
import { z } from "zod";
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
