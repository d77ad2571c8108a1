// One question of `init`: answered by a flag or a file, by a person at the terminal, or in an unattended run by its default.

import { dirname, resolve } from "node:path";
import { fileProblem } from "../../config/environment.ts";
import { AgentError } from "../../core/errors.ts";
import { withoutSecrets } from "../../lib/without-secrets.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed } from "../terminal/exit-status.ts";
import type { InitSource } from "./init-file.ts";

/** Where a password is: it never stands in an argument, which every user of the machine can see. */
export type PasswordPlace =
  /** Relative to the folder of the configuration, or absolute. */
  { readonly file: string } | { readonly env: string };

/** Says why an answer is invalid; undefined: it is valid. */
export type Judge = (answer: string) => string | undefined;

/** What a schema of the configuration says of an answer. */
export function judgedBy(field: {
  safeParse(value: unknown): {
    readonly error?: { readonly issues: readonly { readonly message: string }[] } | undefined;
  };
}): Judge {
  return (text) => field.safeParse(text).error?.issues[0]?.message;
}

interface Question {
  /** As it is asked, without the colon. */
  readonly text: string;
  /** The answer that Enter stands for. */
  readonly usual?: string | undefined;
  /** Left out: any text. */
  readonly judge?: Judge;
  /** The answer of a flag or of the file of answers. Then the question is not asked. */
  readonly given?: string | undefined;
  /** The flag that gives it, for what is wrong with it. */
  readonly flag?: string;
  /** Only a person may decide this. An unattended run without `given` stops with this message, which names the flag. */
  readonly decision?: string;
}

export interface Interview {
  readonly io: Console;
  /** True: no question is asked, and every missing answer takes its default. */
  readonly unattended: boolean;
  /** The configuration that will be written. Files of passwords are relative to its folder. */
  readonly target: string;
}

/** Who answers about sources. */
export interface SourceInterview extends Interview {
  /** Name of the agent that reads them. */
  readonly agent: string;
  readonly dataDir: string;
  /** The sources so far. */
  readonly sources: readonly InitSource[];
  /** Input IDs that are taken; those of further sources are added. */
  readonly inputs: Set<string>;
  readonly offline: boolean;
}

/** One line that a person types. Rejects with `CommandFailed` where the input has ended. */
async function typedLine(prompt: string, { io }: Pick<Interview, "io">, hidden = false): Promise<string> {
  const line = await io.input.ask(prompt, { hidden });
  io.signal.throwIfAborted();
  if (line !== undefined) return line;
  io.complain("");
  throw new CommandFailed("the input ended before the last answer, nothing is written");
}

/**
 * Asks until the answer is valid. Rejects with `CommandFailed`, with `CONFIG_INVALID` where an answer that was given is
 * invalid or a decision is missing, or with the reason of `io.signal`.
 */
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

/** As `answer`, for y or n. */
export async function confirmed(
  question: Omit<Question, "judge">,
  interview: Pick<Interview, "io" | "unattended">,
): Promise<boolean> {
  const text = `${question.text} y or n`;
  return /^y/i.test(await answer({ ...question, text, judge: yesOrNo }, interview));
}

const yesOrNo: Judge = (text) => (/^(y|yes|n|no)$/i.test(text) ? undefined : "must be y or n");

export interface InitSecret {
  /** What stands in the configuration: `${file:service_password}`. */
  readonly reference: string;
  /** Relative to the folder of the configuration; undefined: it is no file. */
  readonly file?: string;
  /** Undefined: it is given later. */
  readonly value?: string | undefined;
}

interface PasswordFlags {
  readonly file: string;
  readonly env: string;
}
export const servicePassword: PasswordFlags = { file: "--password-file", env: "--password-env" };
export const sourcePassword: PasswordFlags = { file: "--source-password-file", env: "--source-password-env" };

/** The password in `place`. Rejects with `CONFIG_INVALID`, which names the flag, where it is not there or empty. */
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

/** What is in `file`; where it is not there, the person is asked for it. */
export async function askedSecret(file: string, interview: Interview): Promise<InitSecret> {
  const reference = referenceTo(file);
  try {
    return { reference, file, value: await contentOf(file, interview) };
  } catch {
    // It is not there, or not for this user to read: then it is not written over.
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
