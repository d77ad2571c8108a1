// The `cluster:` section of the configuration: the NATS servers, and the limits of the shared stream.
import { z } from "zod";
import { byteSize, duration, secret } from "../../lib/values/fields.ts";

const serverAddress = z.string().regex(/^(nats|tls):\/\/(\[[0-9a-fA-F:.]+\]|[^\s/:@?#[\]]+)(:\d{1,5})?$/, {
  error: "must be nats://host:port or tls://host:port; the user and password stand in user and password",
});

const file = (description: string) => z.string().min(1).optional().describe(description);

const tls = z
  .strictObject({
    caFile: file("PEM file with the authorities that sign the certificates of the servers."),
    certFile: file("PEM file with the certificate of this agent, where the servers require one."),
    keyFile: file("PEM file with the key of `certFile`."),
  })
  .refine(({ certFile, keyFile }) => (certFile === undefined) === (keyFile === undefined), {
    error: "must have both of certFile and keyFile, or neither",
  });

export const clusterOptions = z
  .strictObject({
    servers: z
      .array(serverAddress)
      .min(1)
      .describe("Addresses of the NATS servers; one that answers is enough, the others are learned from it.")
      .meta({ examples: [["nats://a:4222", "nats://b:4222", "nats://c:4222"]] }),
    user: z.string().min(1).optional().describe("User name at the servers."),
    password: secret().optional().describe("Password of the user. Better a reference than the password itself."),
    credsFile: file("Credentials file of NATS (JWT and seed)."),
    nkeyFile: file("File with the seed of an NKey."),
    tls: tls.optional().describe("TLS to the servers. Addresses with tls:// use it without this section too."),
    replicas: z
      .union([z.literal(1), z.literal(3), z.literal(5)])
      .default(3)
      .describe("On how many servers each block is stored. 1 does not survive the loss of a server."),
    maxSize: byteSize({ min: 64 * 2 ** 20 })
      .prefault("8GiB")
      .describe("How much the stream may hold. A full stream takes nothing more; the local buffers grow meanwhile."),
    maxAge: duration({ min: 60_000 })
      .prefault("30d")
      .describe("Points that could not be delivered for longer than this are dropped from the stream and logged."),
    leaseTtl: duration({ min: 3_000, max: 60_000 })
      .prefault("6s")
      .describe("How long an agent that does not renew its leases keeps delivery and sources."),
  })
  .superRefine(({ user, password, credsFile, nkeyFile }, context) => {
    if ((user === undefined) !== (password === undefined))
      context.addIssue({ code: "custom", message: "must have both of user and password, or neither" });
    if ([user, credsFile, nkeyFile].filter((one) => one !== undefined).length > 1)
      context.addIssue({ code: "custom", message: "must have at most one of user, credsFile and nkeyFile" });
  });

export type ClusterOptions = z.output<typeof clusterOptions>;
