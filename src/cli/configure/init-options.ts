// Answers for `tagferry init` from flags or an answers file.

import { z } from "zod";
import { readTextFile } from "../../config/files/environment.ts";
import { parseYaml } from "../../config/files/yaml-file.ts";
import { agentOptions, sourceName } from "../../config/format/file-schema.ts";
import { checkNode } from "../../config/nodes/check-node.ts";
import { formatIssue, Issues } from "../../config/nodes/issue.ts";
import { AgentError } from "../../core/errors.ts";
import { driverOfAddress } from "../../discover/device/protocols.ts";
import { securityModes } from "../../lib/text/security-mode.ts";
import { holdsUser } from "../../lib/text/without-secrets.ts";
import { drivers } from "../../source/registry.ts";
import { serviceOptions } from "../../upload/client/options.ts";
import type { Console } from "../terminal/console.ts";
import type { Judge, PasswordPlace } from "./question.ts";

export const sourceAddressProblem: Judge = (url) => {
  // Unlike password files, the configuration is readable by other users.
  if (holdsUser(url)) return "name and password stand in --username and --source-password-file, not in the address";
  if (url === "simulator" || driverOfAddress(url)) return undefined;
  const known = drivers.flatMap(({ schemes = [] }) => schemes.map((name) => `${name}://`));
  return `must be simulator, or begin with one of ${known.join(" ")}`;
};

const password = {
  passwordFile: z.string().min(1).optional().describe("file that holds the password"),
  passwordEnv: z.string().min(1).optional().describe("environment variable that holds the password"),
};

const source = z.strictObject({
  url: z
    .string()
    .superRefine((url, context) => {
      const problem = sourceAddressProblem(url);
      if (problem !== undefined) context.addIssue({ code: "custom", message: problem, input: url });
    })
    .describe("address of the source, or simulator"),
  name: sourceName.optional(),
  username: z.string().min(1).optional(),
  ...password,
  caFile: z.string().min(1).optional().describe("PEM file with the certificate authorities to trust"),
  trust: z.string().min(1).optional().describe("thumbprint of the server's certificate, which a person has compared"),
  securityMode: z.enum(securityModes).optional().describe("none reads the source without security"),
  allowInsecurePassword: z.boolean().optional().describe("sends the password though nothing protects it"),
});

const answersSchema = z.strictObject({
  name: agentOptions.shape.name,
  service: serviceOptions.shape.url.optional(),
  integration: serviceOptions.shape.integration.optional(),
  ...password,
  offline: z.boolean().optional().describe("contacts no source"),
  sources: z.array(source).default([]),
});

export type SourceAnswers = z.output<typeof source>;
type Answers = z.output<typeof answersSchema>;

export interface InitOptions extends Answers {
  /** The file to write; `-`: standard output. */
  readonly config: string;
  readonly unattended: boolean;
}

/** Rejects with `CONFIG_INVALID`; the message lists all issues with their lines. */
export async function readInitAnswers(file: string, { environment }: Pick<Console, "environment">): Promise<Answers> {
  const issues = new Issues();
  const text = await readTextFile(file, { at: { file, line: 1, column: 1 }, path: "" }, environment, issues);
  const node = text === undefined ? undefined : parseYaml(text, file, issues);
  const answers = node && checkNode(answersSchema, node, issues);
  if (!answers || issues.errors > 0)
    throw new AgentError("CONFIG_INVALID", `--answers ${file}\n${issues.list().map(formatIssue).join("\n")}`);
  return answers;
}

export function passwordPlace({
  passwordFile,
  passwordEnv,
}: Pick<Answers, "passwordFile" | "passwordEnv">): PasswordPlace | undefined {
  return passwordFile !== undefined ? { file: passwordFile } : passwordEnv ? { env: passwordEnv } : undefined;
}
