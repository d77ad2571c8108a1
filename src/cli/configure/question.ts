// The answers that `init` needs: from flags, the answers file, a person at the terminal, or in an unattended run the defaults.
import { dirname, resolve } from "node:path";
import { z } from "zod";
import { readTextFile } from "../../config/files/environment.ts";
import { parseYaml } from "../../config/files/yaml-file.ts";
import { agentOptions, sourceName } from "../../config/format/file-schema.ts";
import { checkNode } from "../../config/nodes/check-node.ts";
import { formatIssue, Issues } from "../../config/nodes/issue.ts";
import { AgentError } from "../../core/errors.ts";
import { driverOfAddress } from "../../discover/device/protocols.ts";
import type { InitSource } from "../../discover/tags/source-yaml.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { securityModes } from "../../lib/text/security-mode.ts";
import { holdsUser, withoutSecrets } from "../../lib/text/without-secrets.ts";
import { drivers } from "../../source/registry.ts";
import { serviceOptions } from "../../upload/client/options.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed } from "../terminal/exit-status.ts";

/** Location of a password. It is never an argument, since all users of the machine can see arguments. */
export type PasswordPlace =
  /** Absolute, or relative to the folder of the configuration. */
  { readonly file: string } | { readonly env: string };

/** Returns why an answer is invalid; undefined: it is valid. */
export type Judge = (answer: string) => string | undefined;

/** Validates an answer with a schema of the configuration. */
export function judgedBy(field: {
  safeParse(value: unknown): {
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}): Judge {
  return (text) => field.safeParse(text).error?.issues[0]?.message;
}

interface Question {
  /** The text of the question without a colon. */
  readonly text: string;
  /** The default, taken on Enter. */
  readonly usual?: string | undefined;
  /** Undefined: any text is valid. */
  readonly judge?: Judge;
  /** The answer from a flag or the answers file; the question is then not asked. */
  readonly given?: string | undefined;
  readonly flag?: string;
  /** Only a person may decide this. An unattended run without `given` fails with this message, which names the flag. */
  readonly decision?: string;
}

export interface Interview {
  readonly io: Console;
  /** True: no question is asked, and every missing answer takes its default. */
  readonly unattended: boolean;
  /** The configuration that will be written. Files of passwords are relative to its folder. */
  readonly target: string;
}

export interface SourceInterview extends Interview {
  readonly agent: string;
  readonly dataDir: string;
  readonly sources: readonly InitSource[];
  /** Input IDs in use; those of further sources are added. */
  readonly inputs: Set<string>;
  readonly offline: boolean;
}

/** Reads one line from the terminal. Rejects with `CommandFailed` at the end of the input. */
async function typedLine(prompt: string, { io }: Pick<Interview, "io">, hidden = false): Promise<string> {
  const line = await io.input.ask(prompt, { hidden });
  io.signal.throwIfAborted();
  if (line !== undefined) return line;
  io.complain("");
  throw new CommandFailed("the input ended before the last answer, nothing is written");
}

/** Asks until the answer is valid. Rejects with `CommandFailed`, `CONFIG_INVALID` or the reason of `io.signal`. */
export async function answer(
  question: Question,
  { io, unattended }: Pick<Interview, "io" | "unattended">,
): Promise<string> {
  const { text, usual = "", judge = () => undefined, given, flag, decision } = question;
  if (given !== undefined) {
    const wrong = judge(given);
    if (wrong === undefined) return given;
    throw new AgentError("CONFIG_INVALID", `${flag ?? text} ${withoutSecrets(given)}: ${wrong}`);
  }
  if (unattended) {
    if (decision === undefined) return usual;
    throw new AgentError("CONFIG_INVALID", decision);
  }
  for (;;) {
    const line = await typedLine(usual === "" ? `${text}: ` : `${text} [${usual}]: `, { io });
    const typed = line.trim() === "" ? usual : line.trim();
    const wrong = judge(typed);
    if (wrong === undefined) return typed;
    io.complain(`  ${wrong}`);
  }
}

export async function confirmed(
  question: Omit<Question, "judge">,
  interview: Pick<Interview, "io" | "unattended">,
): Promise<boolean> {
  const text = `${question.text} y or n`;
  return /^y/i.test(await answer({ ...question, text, judge: yesOrNo }, interview));
}

const yesOrNo: Judge = (text) => (/^(y|yes|n|no)$/i.test(text) ? undefined : "must be y or n");

export interface InitSecret {
  /** The reference in the configuration: `${file:service_password}`. */
  readonly reference: string;
  /** Relative to the folder of the configuration. Undefined: the secret is not in a file. */
  readonly file?: string;
  /** Undefined: the user adds it later. */
  readonly value?: string | undefined;
}

interface PasswordFlags {
  readonly file: string;
  readonly env: string;
}
export const servicePassword: PasswordFlags = { file: "--password-file", env: "--password-env" };
export const sourcePassword: PasswordFlags = { file: "--source-password-file", env: "--source-password-env" };

/** The password in `place`. Rejects with `CONFIG_INVALID`, naming the flag, if it is missing or empty. */
export async function placedSecret(
  place: PasswordPlace,
  flags: PasswordFlags,
  interview: Interview,
): Promise<InitSecret & { readonly value: string }> {
  if ("env" in place) {
    const value = interview.io.environment.variables[place.env];
    if (value !== undefined && value !== "") return { reference: `\${${place.env}}`, value };
    const why = value === undefined ? "the environment has no such variable" : "the variable is empty";
    throw new AgentError("CONFIG_INVALID", `${flags.env} ${place.env}: ${why}`);
  }
  const { file } = place;
  const value = await contentOf(file, interview).catch((error: unknown) => {
    throw new AgentError("CONFIG_INVALID", `${flags.file} ${file}: ${fileProblem(error)}`, { cause: error });
  });
  if (value === "") throw new AgentError("CONFIG_INVALID", `${flags.file} ${file}: the file is empty`);
  return { reference: referenceTo(file), file, value };
}

/** The content of `file`. If it cannot be read, asks for the password. */
export async function askedSecret(file: string, interview: Interview): Promise<InitSecret> {
  const reference = referenceTo(file);
  try {
    return { reference, file, value: await contentOf(file, interview) };
  } catch {
    // The file is missing or unreadable for this user. An existing file is never overwritten.
  }
  const prompt = `  Password, which goes into ${file} and is not shown here; Enter: later: `;
  const typed = await typedLine(prompt, interview, true);
  return typed === "" ? { reference, file } : { reference, file, value: typed };
}

export function referenceTo(file: string): string {
  return `\${file:${file}}`;
}

async function contentOf(file: string, { io, target }: Interview): Promise<string> {
  const bytes = await io.environment.readFile(resolve(dirname(target), file));
  return new TextDecoder().decode(bytes).replace(/\r?\n$/, "");
}

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
