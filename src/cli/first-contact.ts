// What `init` asks before it looks into a server for the first time: whose certificate it is, or to do without security.
import { isAgentError } from "../core/errors.ts";
import type { BrowseTarget, OfferedEndpoint } from "../core/source.ts";
import { drivers } from "../source/registry.ts";
import { commandRuntime } from "./command-runtime.ts";
import type { Console } from "./console.ts";
import { ask, yesOrNo } from "./question.ts";
import { visible } from "./table.ts";

/** The agent that the configuration is for. */
export interface AgentFolder {
  readonly agent: string;
  readonly dataDir: string;
  readonly configFile: string;
}

export interface FirstContact {
  /** The operator reads it without security. */
  readonly withoutSecurity: boolean;
  /** How to look into it. */
  readonly target: Omit<BrowseTarget, "url">;
}

/** Undefined: the input has ended. Asks nothing of devices that have no endpoints, or whose endpoints cannot be had. */
export async function firstContact(
  url: string,
  { agent, dataDir, configFile }: AgentFolder,
  io: Console,
): Promise<FirstContact | undefined> {
  const driver = drivers.find(({ schemes = [] }) => schemes.some((scheme) => url.startsWith(`${scheme}://`)));
  if (!driver?.endpoints) return { withoutSecurity: false, target: {} };
  const target = { agent, sharedDir: dataDir, configFile };
  let offered: readonly OfferedEndpoint[];
  try {
    offered = await driver.endpoints({ url }, commandRuntime(), io.signal);
  } catch (error) {
    // Looking into it tells the operator what is wrong.
    if (!isAgentError(error)) throw error;
    return { withoutSecurity: false, target };
  }
  const secure = offered.find((endpoint) => endpoint.secure);
  if (!secure) {
    io.complain("  The server offers no security: everything can be read and changed on the way.");
    const answer = await ask("  Read it without security? y or n", "", yesOrNo, io);
    if (answer === undefined) return undefined;
    const withoutSecurity = /^y/i.test(answer);
    return { withoutSecurity, target: withoutSecurity ? { ...target, security: { mode: "none" } } : target };
  }
  if (secure.certificate === undefined) return { withoutSecurity: false, target };
  for (const line of [
    "  The server shows this certificate; compare it with what the server itself displays:",
    `    thumbprint  ${secure.certificate}`,
    `    subject     ${secure.subject}`,
    `    valid       ${secure.validFrom} to ${secure.validTo}`,
  ])
    io.complain(visible(line));
  const answer = await ask("  Is it the same, and shall the agent trust it? y or n", "", yesOrNo, io);
  if (answer === undefined) return undefined;
  return { withoutSecurity: false, target: /^y/i.test(answer) ? { ...target, trust: secure.certificate } : target };
}
