// How a command shows the agent that it may ask: by `http.token`, or by being able to read the data directory.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { controlTokenIn, controlTokenName } from "../../agent/process/control-token.ts";
import { agentPlace } from "../../config/agent-place.ts";
import { fileProblem } from "../../config/read-file.ts";
import { AgentError } from "../../core/errors.ts";
import { leavesMachine } from "../../lib/loopback.ts";
import type { Console } from "../terminal/console.ts";
import { type AgentAddressOptions, type AgentCall, callAgent, jsonOf } from "./agent-address.ts";

interface TokenOptions extends AgentAddressOptions {
  /** File with `http.token` in it. */
  readonly tokenFile?: string;
}

const refusal = z.object({ reason: z.string(), tokenFile: z.string().optional() });
/** Sources that do not stop have their time to be left behind. */
const withinMs = 60_000;

/** Resolves with the JSON that is answered. Rejects with `AGENT_UNREACHABLE`, `AGENT_REFUSED` or `signal.reason`. */
export async function askWithToken(
  url: string,
  call: Pick<AgentCall, "method" | "path">,
  options: TokenOptions,
  io: Console,
): Promise<unknown> {
  const { text, origin } = await callWithToken(url, call, options, io);
  return jsonOf(text, origin);
}

/** As `askWithToken`, with the text of the answer. */
export async function callWithToken(
  url: string,
  call: Pick<AgentCall, "method" | "path">,
  options: TokenOptions,
  io: Console,
): Promise<{ readonly text: string; readonly origin: string }> {
  const first = await callAgent(url, { ...call, withinMs, token: await knownToken(options, io) }, io.signal);
  if (first.status !== 401) return answered(first);
  const asked = refusal.safeParse(jsonOf(first.text, first.origin));
  if (!asked.success) throw new AgentError("AGENT_UNREACHABLE", `what answers at ${first.origin} is no agent`);
  const { reason, tokenFile } = asked.data;
  if (tokenFile === undefined || !isHere(url)) throw refused(first.origin, reason);
  const token = await tokenIn(tokenFile);
  if (token === undefined)
    throw refused(first.origin, `${reason}; the one in ${tokenFile} cannot be read by this user`);
  const second = await callAgent(url, { ...call, withinMs, token }, io.signal);
  if (second.status === 401) throw refused(first.origin, reason);
  return answered(second);
}

function answered({ status, text, origin }: Awaited<ReturnType<typeof callAgent>>) {
  // 422: it was done, and what came of it is an error that the answer tells.
  if (status === 200 || status === 422) return { text, origin };
  if (status === 403) throw refused(origin, text.slice(0, 200).trim());
  throw new AgentError("AGENT_UNREACHABLE", `what answers at ${origin} cannot do that: HTTP ${status}`);
}

function refused(origin: string, reason: string): AgentError {
  return new AgentError("AGENT_REFUSED", `the agent at ${origin} refuses: ${reason}`);
}

async function knownToken({ tokenFile, config }: TokenOptions, io: Console): Promise<string | undefined> {
  if (tokenFile !== undefined) {
    try {
      return (await readFile(tokenFile, "utf8")).trim();
    } catch (error) {
      throw new AgentError("AGENT_REFUSED", `--token-file ${tokenFile} cannot be read: ${fileProblem(error)}`, {
        cause: error,
      });
    }
  }
  const place = config === undefined ? undefined : await agentPlace(config, io.environment);
  if (!place) return undefined;
  return place.token?.reveal() ?? (await tokenIn(join(place.dataDir, controlTokenName)));
}

/**
 * What an agent wrote into its `control.token`; undefined where it cannot be read, or is no such file. Whoever answers
 * may name any file, so none but such a one is ever sent.
 */
async function tokenIn(file: string): Promise<string | undefined> {
  if (!file.endsWith(`/${controlTokenName}`)) return undefined;
  try {
    return controlTokenIn(await readFile(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** A token of this machine goes to no other one. */
function isHere(url: string): boolean {
  return !leavesMachine(url);
}
