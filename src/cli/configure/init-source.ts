// The questions of `tagferry init` about one source, and the tags found there.
import { dirname, resolve } from "node:path";
import { sourceName } from "../../config/format/file-schema.ts";
import type { BrowsedNode, BrowseTarget, OfferedEndpoint } from "../../core/commissioning.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { addressOverTls, driverOfAddress, hasOption, knownCertificates } from "../../discover/device/protocols.ts";
import { browsedYaml } from "../../discover/tags/browsed.ts";
import { configuredUrl, type InitSource } from "../../discover/tags/source-yaml.ts";
import { leavesMachine } from "../../lib/network/loopback.ts";
import { visible } from "../../lib/text/visible.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { count } from "../terminal/text.ts";
import { passwordPlace, type SourceAnswers } from "./init-options.ts";
import {
  answer,
  askedSecret,
  confirmed,
  type InitSecret,
  type Interview,
  type Judge,
  judgedBy,
  placedSecret,
  type SourceInterview,
  sourcePassword,
} from "./question.ts";

/** Rejects as `answer` does; an unattended run also as `Driver.browse` does. */
export async function askSource(
  given: SourceAnswers,
  interview: SourceInterview,
): Promise<{ source: InitSource; secret?: InitSecret }> {
  const { url: address } = given;
  const driver = driverOfAddress(address);
  const type = driver?.type ?? "simulator";
  const usual = freeName(type, interview.sources);
  const name = given.name === undefined ? usual : await nameOf(given.name, interview);
  if (type === "simulator") return { source: { name, type } };
  const url = configuredUrl(address);
  // The unit in the address identifies the device, and the protocol has no login.
  if (driver?.device?.includes("unit") === true) {
    const place = await withUnit(address, interview);
    const anyUnit = /[?&]replyUnit=any(&|$)/.test(address);
    return { source: { name, type, url, anyUnit, tags: await lookAt({ url: place }, interview) } };
  }
  const caFile = await caFileOf(given, interview);
  const contact = interview.offline ? undefined : await firstContact(given, interview);
  const securityMode = contact ? contact.securityMode : given.securityMode;
  const access: Omit<BrowseTarget, "url"> = {
    ...contact?.target,
    ...(caFile !== undefined && { options: { caFile } }),
  };
  const username = await usernameOf(given, interview);
  const found = { name, type, url, securityMode, caFile };
  if (username === "") return { source: { ...found, tags: await lookAt({ url: address, ...access }, interview) } };
  if (!(await loginAllowed(given, interview))) return { source: found };
  const secret = await passwordOf(given, name, interview);
  // Not every protocol has this option.
  const insecureAnswer = driver && hasOption(driver, "allowInsecurePassword") ? given.allowInsecurePassword : undefined;
  const { trust, allowInsecurePassword = insecureAnswer } =
    contact?.securityMode === "none" ? await passwordWithoutSecurity(given, contact, interview) : {};
  const login: BrowseTarget = {
    url: address,
    ...access,
    username,
    ...(secret.value !== undefined && { password: secret.value }),
    ...(trust !== undefined && { trust }),
    ...(allowInsecurePassword === true && { options: { ...access.options, allowInsecurePassword } }),
  };
  const tags = await lookAt(login, interview);
  return { source: { ...found, username, password: secret.reference, allowInsecurePassword, tags }, secret };
}

async function nameOf(given: string, interview: SourceInterview): Promise<string> {
  const judge: Judge = (name) =>
    interview.sources.some((other) => other.name === name)
      ? "another source has this name"
      : judgedBy(sourceName)(name);
  return await answer({ text: "  Name of the source", given, judge, flag: "--source-name" }, interview);
}

/** Servers in plants often have certificates of a private authority. Undefined: the authorities of the system. */
async function caFileOf({ url, caFile }: SourceAnswers, interview: Interview) {
  const driver = driverOfAddress(url);
  // The address uses the TLS variant of a scheme, such as wss for ws.
  const overTls = driver?.schemes?.includes(url.slice(0, url.indexOf(":") - 1).toLowerCase()) === true;
  if (caFile === undefined && !(driver && overTls && hasOption(driver, "caFile"))) return undefined;
  const text = "  PEM file with the certificate authority of the broker; Enter: the authorities of the system";
  const file = await answer({ text, given: caFile, flag: "--ca-file" }, interview);
  return file === "" ? undefined : resolve(dirname(interview.target), file);
}

/** Empty: no login. Asks only if the protocol has a login. */
async function usernameOf({ url, username: given }: SourceAnswers, interview: Interview): Promise<string> {
  const driver = driverOfAddress(url);
  if (!driver || hasOption(driver, "username"))
    return await answer({ text: "  User name; Enter: none", given, flag: "--username" }, interview);
  if (given === undefined || given === "") return "";
  throw new AgentError("CONFIG_INVALID", `--username ${given}: ${driver.example.protocol} has no login; leave it out`);
}

async function withUnit(address: string, interview: Interview): Promise<string> {
  if (/[?&]unit=/.test(address)) return address;
  const question = { text: "  Unit identifier, or all", usual: "1", judge: unitOrAll, flag: "?unit= in --source" };
  const unit = await answer(question, interview);
  return /^\d+$/.test(unit) ? `${address}${address.includes("?") ? "&" : "?"}unit=${unit}` : address;
}

async function passwordOf(given: SourceAnswers, name: string, interview: Interview): Promise<InitSecret> {
  const place = passwordPlace(given);
  if (place !== undefined) return await placedSecret(place, sourcePassword, interview);
  if (!interview.unattended) return await askedSecret(`${name}_password`, interview);
  const { file, env } = sourcePassword;
  throw new AgentError("CONFIG_INVALID", `user ${given.username} needs a password: ${file} or ${env} says where it is`);
}

/** The tags that the source offers now. Undefined: not queried, or no answer. */
async function lookAt(target: BrowseTarget, interview: SourceInterview): Promise<string | undefined> {
  const { io, unattended, offline, inputs } = interview;
  if (offline) return undefined;
  const wanted = { text: "  List what it offers now, and add all of it?", usual: "y", flag: "--offline" };
  if (!(await confirmed(wanted, interview))) return undefined;
  const driver = driverOfAddress(target.url);
  const nodes: BrowsedNode[] = [];
  try {
    for await (const node of driver?.browse?.(target, commandRuntime(), io.signal) ?? []) {
      nodes.push(node);
      io.progress(`${nodes.length} found`);
    }
  } catch (error) {
    io.progress(undefined);
    if (unattended || !isAgentError(error)) throw error;
    io.complain(`  ${error.message}\n  ${error.hint}`);
    return undefined;
  }
  io.progress(undefined);
  io.complain(`  ${count(nodes.length, "node")} found`);
  return nodes.length === 0 ? undefined : browsedYaml(nodes, inputs);
}

export function freeName(type: string, others: readonly InitSource[]): string {
  const taken = new Set(others.map(({ name }) => name));
  const wanted = type === "simulator" ? "demo" : type;
  let name = wanted;
  for (let n = 2; taken.has(name); n++) name = `${wanted}${n}`;
  return name;
}

const unitOrAll: Judge = (text) =>
  text === "all" || (/^\d{1,3}$/.test(text) && Number(text) <= 255) ? undefined : "must be 0 to 255, or all";

// Decides in `init`, before the first connection to a server: accept its certificate, or connect without security.
interface FirstContact {
  /** `security.mode` of the source; undefined: the best that the server offers. */
  readonly securityMode: SourceAnswers["securityMode"];
  readonly target: Omit<BrowseTarget, "url">;
  /** Empty: the protocol has no endpoints, or the request for them failed. */
  readonly offered: readonly OfferedEndpoint[];
}

/** Asks nothing if the protocol has no endpoints or the request for them fails. Rejects as `answer` does. */
async function firstContact(given: SourceAnswers, interview: SourceInterview): Promise<FirstContact> {
  const { url, securityMode } = given;
  const { agent, dataDir, target: configFile } = interview;
  const driver = driverOfAddress(url);
  if (!driver?.endpoints) return { securityMode, target: {}, offered: [] };
  const target = { agent, sharedDir: dataDir, configFile, ...(securityMode && { security: { mode: securityMode } }) };
  let offered: readonly OfferedEndpoint[];
  try {
    offered = await driver.endpoints({ url }, commandRuntime(), interview.io.signal);
  } catch (error) {
    // Browsing reports the error to the operator.
    if (!isAgentError(error)) throw error;
    return { securityMode, target, offered: [] };
  }
  const secure = offered.find((endpoint) => endpoint.secure);
  if (secure && securityMode !== "none") {
    const compared = await comparedCertificate(secure, given, interview);
    return { securityMode, target: { ...target, ...compared }, offered };
  }
  if (securityMode !== undefined) return { securityMode, target, offered };
  if (!interview.unattended)
    interview.io.complain("  The server offers no security: everything can be read and changed on the way.");
  const withoutSecurity = await confirmed(
    {
      text: "  Read it without security?",
      decision: `${url} offers no security: everything can be read and changed on the way; --security-mode none reads it all the same`,
    },
    interview,
  );
  if (!withoutSecurity) return { securityMode, target, offered };
  return { securityMode: "none", target: { ...target, security: { mode: "none" } }, offered };
}

/**
 * Without channel security, a password needs a compared server certificate or consent to clear text. Rejects as
 * `answer` does.
 */
async function passwordWithoutSecurity(
  given: SourceAnswers,
  { offered }: FirstContact,
  interview: SourceInterview,
): Promise<Pick<BrowseTarget, "trust"> & { readonly allowInsecurePassword?: true }> {
  const { url, allowInsecurePassword } = given;
  const [endpoint] = offered.filter(
    ({ logins, security }) => security.startsWith("none") && logins.includes("username"),
  );
  if (allowInsecurePassword === true) return { allowInsecurePassword };
  if (!endpoint) return {};
  if (endpoint.passwordInClear !== true) return await comparedCertificate(endpoint, given, interview);
  const allowed = await confirmed(
    {
      text: "  The password would go in clear text: everybody on the way can read it. Send it all the same?",
      decision: `${url} takes the password in clear text only: everybody on the way can read it; --allow-insecure-password sends it all the same`,
    },
    interview,
  );
  return allowed ? { allowInsecurePassword: true } : {};
}

/** Whether credentials may go to `url`: it is encrypted, local, or the operator agreed. Rejects as `answer` does. */
async function loginAllowed({ url, allowInsecurePassword }: SourceAnswers, interview: Interview): Promise<boolean> {
  const secure = addressOverTls(url);
  if (allowInsecurePassword === true || secure === undefined || !leavesMachine(url)) return true;
  const allowed = await confirmed(
    {
      text: "  The connection is not encrypted: everybody on the way can read the password. Send it all the same?",
      decision: `${url} is not encrypted: everybody on the way can read the password; use ${secure} if the broker offers it, or --allow-insecure-password to send it all the same`,
    },
    interview,
  );
  if (!allowed)
    interview.io.complain(
      `  The source is written without a login; if the broker offers TLS, write url: ${secure}, with username and password`,
    );
  return allowed;
}

/** Empty if the agent already trusts the certificate, or the operator does not. Rejects as `answer` does. */
async function comparedCertificate(
  endpoint: OfferedEndpoint,
  { url, trust: given }: SourceAnswers,
  interview: SourceInterview,
): Promise<Pick<BrowseTarget, "trust">> {
  const { certificate: thumbprint, sha256 } = endpoint;
  if (thumbprint === undefined) return {};
  const certificate = [
    `    thumbprint  ${thumbprint}`,
    `    subject     ${endpoint.subject}`,
    `    valid       ${endpoint.validFrom} to ${endpoint.validTo}`,
  ].map(visible);
  if (given !== undefined) {
    const plain = given.replaceAll(":", "").toLowerCase();
    if (plain === thumbprint || plain === sha256) return { trust: thumbprint };
    const message = `--trust ${given}: the server shows another certificate\n${certificate.join("\n")}`;
    throw new AgentError("CONFIG_INVALID", message);
  }
  const known = await knownCertificates(interview.dataDir);
  if (known.some((each) => each.state === "trusted" && each.thumbprint === thumbprint)) return {};
  if (!interview.unattended) {
    interview.io.complain("  The server shows this certificate; compare it with what the server itself displays:");
    for (const line of certificate) interview.io.complain(line);
  }
  const trusted = await confirmed(
    {
      text: "  Is it the same, and shall the agent trust it?",
      decision: `${url} shows a certificate that the agent does not trust yet\n${certificate.join("\n")}\n  compare it with what the server itself displays; --trust ${thumbprint} trusts it`,
    },
    interview,
  );
  return trusted ? { trust: thumbprint } : {};
}
