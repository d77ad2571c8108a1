// Options of the local service: address, data folder, integrations, and behaviour under load.
import { z } from "zod";
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
