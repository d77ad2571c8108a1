// One question at the terminal, asked until the answer will do.
import type { Console } from "./console.ts";

/** Says why an answer will not do; undefined: it does. */
export type Judge = (answer: string) => string | undefined;

/** Undefined: the input has ended. */
export async function ask(question: string, usual: string, judge: Judge, io: Console): Promise<string | undefined> {
  for (;;) {
    const line = await io.input.ask(usual === "" ? `${question}: ` : `${question} [${usual}]: `);
    io.signal.throwIfAborted();
    if (line === undefined) {
      io.complain("\ntagferry: the input ended before the last answer, nothing is written");
      return undefined;
    }
    const answer = line.trim() === "" ? usual : line.trim();
    const wrong = judge(answer);
    if (wrong === undefined) return answer;
    io.complain(`  ${wrong}`);
  }
}

export const yesOrNo: Judge = (answer) => (/^(y|yes|n|no)$/i.test(answer) ? undefined : "must be y or n");
