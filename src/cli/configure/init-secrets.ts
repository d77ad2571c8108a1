// Passwords that `tagferry init` deals with: which reference stands in the configuration, and what is in a file.
import { dirname, resolve } from "node:path";
import { fileProblem } from "../../config/read-file.ts";
import { AgentError } from "../../core/errors.ts";
import type { PasswordPlace } from "./init-options.ts";
import { InputEnded, type Interview } from "./question.ts";

/** A password of the configuration. */
export interface InitSecret {
  /** What stands in the configuration: `${file:service_password}`. */
  readonly reference: string;
  /** Relative to the folder of the configuration; undefined: it is no file. */
  readonly file?: string;
  /** Undefined: it is given later. */
  readonly value?: string | undefined;
}

/** The flags that name a password. */
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
  target: string,
  { io }: Interview,
): Promise<InitSecret & { readonly value: string }> {
  if ("env" in place) {
    const value = io.environment.variables[place.env];
    if (value !== undefined && value !== "") return { reference: `\${${place.env}}`, value };
    const why = value === undefined ? "the environment has no such variable" : "the variable is empty";
    throw new AgentError("CONFIG_INVALID", `${flags.env} ${place.env}: ${why}`);
  }
  const { file } = place;
  const value = await contentOf(file, target, { io }).catch((error: unknown) => {
    throw new AgentError("CONFIG_INVALID", `${flags.file} ${file}: ${fileProblem(error)}`, { cause: error });
  });
  if (value === "") throw new AgentError("CONFIG_INVALID", `${flags.file} ${file}: the file is empty`);
  return { reference: referenceTo(file), file, value };
}

/** What is in `file`; where it is not there, the person is asked for it. */
export async function askedSecret(file: string, target: string, { io }: Interview): Promise<InitSecret> {
  const reference = referenceTo(file);
  try {
    return { reference, file, value: await contentOf(file, target, { io }) };
  } catch {
    // It is not there, or not for this user to read: then it is not written over.
  }
  const typed = await io.input.ask(`  Password, which goes into ${file} and is not shown here; Enter: later: `, {
    hidden: true,
  });
  io.signal.throwIfAborted();
  if (typed === undefined) throw new InputEnded("the input ended before the last answer");
  return typed === "" ? { reference, file } : { reference, file, value: typed };
}

export function referenceTo(file: string): string {
  return `\${file:${file}}`;
}

async function contentOf(file: string, target: string, { io }: Pick<Interview, "io">): Promise<string> {
  const bytes = await io.environment.readFile(resolve(dirname(target), file));
  return new TextDecoder().decode(bytes).replace(/\r?\n$/, "");
}
