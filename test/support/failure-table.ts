// The table of a driver's failures: the error that the user sees for each, in a file that can be read as a whole.
import { expect } from "vitest";
import { isAgentError } from "../../src/core/errors.ts";

/** The failure as the test names it, and a function that returns it: an error, or the reason of a reading. */
export type FailureRow = readonly [what: string, failure: () => Promise<unknown>];

/** Phrases of messages that do not name the cause. */
const forbidden = [
  /\bnobody\b/,
  /\bundefined\b|\[object/,
  /none, None/,
  /\bbad: bad\b/i,
  /value of type \d/,
  /without a word/,
  /in words/,
];
/** Only these failures may mention a login. */
const aboutLogin = /user name|password|login|logging in|authenticat|authori[sz]ed|user certificate/i;
const loginHint = /check the credentials/;

/** Causes every failure in turn and returns the table. Ports, folders and thumbprints are replaced by fixed texts. */
export async function failureTable(rows: readonly FailureRow[]): Promise<string> {
  const table: string[] = [];
  for (const [what, failure] of rows) {
    const lines = linesOf(await failure(), what);
    for (const line of lines) for (const word of forbidden) expect(line, what).not.toMatch(word);
    const [message = ""] = lines;
    if (!aboutLogin.test(message)) expect(lines.join("\n"), what).not.toMatch(loginHint);
    table.push([`## ${what}`, ...lines].join("\n"));
  }
  return `${table.join("\n\n")}\n`;
}

function linesOf(failure: unknown, what: string): readonly string[] {
  if (typeof failure === "string") return [equal(failure)];
  if (!isAgentError(failure))
    throw new Error(`${what}: expected a failure, got ${String(failure)}`, { cause: failure });
  return [`${failure.code}: ${equal(failure.message)}`, ...failure.hint.split("\n").map((line) => `  ${equal(line)}`)];
}

function equal(text: string): string {
  return text
    .replace(/(127\.0\.0\.1|localhost):\d+/g, "$1:PORT")
    .replace(/\/tmp\/[^/\s]+/g, "/FOLDER")
    .replace(/\b[0-9a-f]{40}\b/g, "THUMBPRINT")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replace(/[A-Z][a-z]{2} +\d+ [\d:]{8} \d{4} GMT/g, "TIME")
    .replace(/client tagferry-[\w-]+/g, "client CLIENT")
    .replace(/(?<=CN=NodeOPCUA@)[^;,)]+/g, "HOST");
}

/** The error with which `attempt` fails; undefined if it succeeds. Closes the result of `attempt`. */
export async function failureOf(attempt: () => Promise<unknown>): Promise<unknown> {
  try {
    const given = await attempt();
    if (typeof given === "object" && given !== null && Symbol.asyncDispose in given) {
      const { [Symbol.asyncDispose]: dispose } = given;
      if (typeof dispose === "function") await dispose.call(given);
    }
    return undefined;
  } catch (error) {
    return error;
  }
}
