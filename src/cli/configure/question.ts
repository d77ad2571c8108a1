// One question of `init`: answered beforehand, by a person at the terminal, or by its default where nobody is asked.
import { AgentError } from "../../core/errors.ts";
import { withoutSecrets } from "../../lib/without-secrets.ts";
import type { Console } from "../terminal/console.ts";

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
  /** The answer, where a flag or the file of answers gives it: then nobody is asked. */
  readonly given?: string | undefined;
  /** The flag that gives it. */
  readonly flag: string;
  /** Only a person may decide this. An unattended run without `given` stops with this message, which names the flag. */
  readonly decision?: string;
}

/** Who answers. */
export interface Interview {
  readonly io: Console;
  /** Nobody is asked: what is not given takes its default. */
  readonly unattended: boolean;
}

/** The input ended before the last answer. */
export class InputEnded extends Error {
  override readonly name = "InputEnded";
}

/**
 * Asks until the answer is valid. Rejects with `InputEnded`, with `CONFIG_INVALID` where an answer that was given is
 * invalid or a decision is missing, or with the reason of `io.signal`.
 */
export async function answer(question: Question, { io, unattended }: Interview): Promise<string> {
  const { text, usual = "", judge = () => undefined, given, flag, decision } = question;
  if (given !== undefined) {
    const wrong = judge(given);
    if (wrong === undefined) return given;
    throw new AgentError("CONFIG_INVALID", `${flag} ${withoutSecrets(given)}: ${wrong}`);
  }
  if (unattended) {
    if (decision === undefined) return usual;
    throw new AgentError("CONFIG_INVALID", decision);
  }
  for (;;) {
    const line = await io.input.ask(usual === "" ? `${text}: ` : `${text} [${usual}]: `);
    io.signal.throwIfAborted();
    if (line === undefined) throw new InputEnded("the input ended before the last answer");
    const typed = line.trim() === "" ? usual : line.trim();
    const wrong = judge(typed);
    if (wrong === undefined) return typed;
    io.complain(`  ${wrong}`);
  }
}

/** As `answer`, for y or n. */
export async function confirmed(question: Omit<Question, "judge">, interview: Interview): Promise<boolean> {
  const text = `${question.text} y or n`;
  return /^y/i.test(await answer({ ...question, text, judge: yesOrNo }, interview));
}

const yesOrNo: Judge = (text) => (/^(y|yes|n|no)$/i.test(text) ? undefined : "must be y or n");
