// The questions of `tagferry init` about one source, and the tags found there.
import { dirname, resolve } from "node:path";
import { sourceName } from "../../config/format/file-schema.ts";
import type { BrowsedNode, BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { driverOfAddress, hasOption, knownCertificates } from "../../discover/device/protocols.ts";
import { type Contact, type ContactFacts, type Decision, undecided, withAccess } from "../../discover/device/target.ts";
import { browsedYaml } from "../../discover/tags/browsed.ts";
import { configuredUrl, type InitSource } from "../../discover/tags/source-yaml.ts";
import { visible } from "../../lib/text/visible.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import { count } from "../terminal/text.ts";
import {
  answer,
  askedSecret,
  confirmed,
  type InitSecret,
  type Interview,
  type Judge,
  judgedBy,
  passwordPlace,
  placedSecret,
  type SourceAnswers,
  type SourceInterview,
  sourcePassword,
} from "./question.ts";

/** Rejects as `answer` does; an unattended run also as `Driver.browse` does. */
export async function askSource(
  given: SourceAnswers,
  interview: SourceInterview,
): Promise<{ source: InitSource; secret?: InitSecret }> {
  const { url: address, securityMode, trust, allowInsecurePassword: insecure } = given;
  const { agent, dataDir: sharedDir, target: configFile } = interview;
  const driver = driverOfAddress(address);
  const type = driver?.type ?? "simulator";
  const usual = freeName(type, interview.sources);
  const name = given.name === undefined ? usual : await nameOf(given.name, interview);
  if (!driver) return { source: { name, type } };
  const url = configuredUrl(address);
  // The unit in the address identifies the device, and the protocol has no login.
  if (driver.device?.includes("unit") === true) {
    const place = await withUnit(address, interview);
    const anyUnit = /[?&]replyUnit=any(&|$)/.test(address);
    return { source: { name, type, url, anyUnit, tags: await lookAt(driver, { url: place }, interview) } };
  }
  const caFile = await caFileOf(driver, given, interview);
  const facts = factsOf(driver, address, interview);
  const wish: Contact = {
    url: address,
    securityMode,
    trust: trust?.replaceAll(":", "").toLowerCase(),
    allowInsecurePassword: insecure,
  };
  const { decided, declined } = await decideAll(wish, facts, given, interview);
  const username = await usernameOf(driver, given, interview);
  const target = { url: address, sharedDir, agent, configFile, ...(caFile !== undefined && { options: { caFile } }) };
  const found = { name, type, url, securityMode: decided.securityMode, caFile };
  if (username === "")
    return { source: { ...found, tags: await lookAt(driver, withAccess(driver, target, decided), interview) } };
  // What was declined is not asked again. The consent to a password comes before the password.
  const left = declined ? { ...facts, offered: async () => undefined } : facts;
  const login = await decideAll({ ...decided, username, password: "" }, left, given, interview);
  if (login.declined?.kind === "clearPassword" && login.declined.secureUrl !== undefined) {
    interview.io.complain(
      `  The source is written without a login; if the broker offers TLS, write url: ${login.declined.secureUrl}, with username and password`,
    );
    return { source: found };
  }
  const secret = await passwordOf(given, name, interview);
  const access = { ...login.decided, password: secret.value };
  const tags = await lookAt(driver, withAccess(driver, target, access), interview);
  // Not every protocol has this option.
  const hasConsent = hasOption(driver, "allowInsecurePassword") && access.allowInsecurePassword === true;
  const allowInsecurePassword = hasConsent || undefined;
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
async function caFileOf(driver: Driver, { url, caFile }: SourceAnswers, interview: Interview) {
  // The address uses the TLS variant of a scheme, such as wss for ws.
  const overTls = driver.schemes?.includes(url.slice(0, url.indexOf(":") - 1).toLowerCase()) === true;
  if (caFile === undefined && !(overTls && hasOption(driver, "caFile"))) return undefined;
  const text = "  PEM file with the certificate authority of the broker; Enter: the authorities of the system";
  const file = await answer({ text, given: caFile, flag: "--ca-file" }, interview);
  return file === "" ? undefined : resolve(dirname(interview.target), file);
}

/** Empty: no login. Asks only if the protocol has a login. */
async function usernameOf(driver: Driver, { username: given }: SourceAnswers, interview: Interview): Promise<string> {
  if (hasOption(driver, "username"))
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
async function lookAt(driver: Driver, target: BrowseTarget, interview: SourceInterview): Promise<string | undefined> {
  const { io, unattended, offline, inputs } = interview;
  if (offline) return undefined;
  const wanted = { text: "  List what it offers now, and add all of it?", usual: "y", flag: "--offline" };
  if (!(await confirmed(wanted, interview))) return undefined;
  const nodes: BrowsedNode[] = [];
  try {
    for await (const node of driver.browse?.(target, commandRuntime(), io.signal) ?? []) {
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

/** The endpoints are requested once. Browsing reports to the operator why a request for them fails. */
function factsOf(driver: Driver, url: string, { io, offline, dataDir }: SourceInterview): ContactFacts {
  const request = async () => {
    try {
      return offline ? undefined : await driver.endpoints?.({ url }, commandRuntime(), io.signal);
    } catch (error) {
      if (!isAgentError(error)) throw error;
      return undefined;
    }
  };
  let offered: ReturnType<typeof request> | undefined;
  return { offered: () => (offered ??= request()), known: () => knownCertificates(dataDir) };
}

/** Has the operator decide what is left to decide, up to what is declined. Rejects as `answer` does. */
async function decideAll(wish: Contact, facts: ContactFacts, given: SourceAnswers, interview: SourceInterview) {
  let decided = wish;
  for (;;) {
    const declined = await undecided(decided, facts);
    if (!declined) return { decided };
    const { notes = [], text, decision, answer: more } = questionOf(declined, given);
    if (!interview.unattended) for (const note of notes) interview.io.complain(note);
    if (!(await confirmed({ text, decision }, interview))) return { decided, declined };
    decided = { ...decided, ...more };
  }
}

interface DecisionQuestion {
  /** Lines before the question. */
  readonly notes?: readonly string[];
  readonly text: string;
  /** As in `Question`. */
  readonly decision: string;
  /** What a yes adds. */
  readonly answer: Partial<Contact>;
}

/** Throws `CONFIG_INVALID` if the server shows another certificate than the given one. */
function questionOf(decision: Decision, { url, trust }: SourceAnswers): DecisionQuestion {
  if (decision.kind === "noSecurity")
    return {
      notes: ["  The server offers no security: everything can be read and changed on the way."],
      text: "  Read it without security?",
      decision: `${url} offers no security: everything can be read and changed on the way; --security-mode none reads it all the same`,
      answer: { securityMode: "none" },
    };
  if (decision.kind === "clearPassword")
    return {
      ...(decision.secureUrl === undefined
        ? {
            text: "  The password would go in clear text: everybody on the way can read it. Send it all the same?",
            decision: `${url} takes the password in clear text only: everybody on the way can read it; --allow-insecure-password sends it all the same`,
          }
        : {
            text: "  The connection is not encrypted: everybody on the way can read the password. Send it all the same?",
            decision: `${url} is not encrypted: everybody on the way can read the password; use ${decision.secureUrl} if the broker offers it, or --allow-insecure-password to send it all the same`,
          }),
      answer: { allowInsecurePassword: true },
    };
  const { sha256, thumbprint, subject, validFrom, validTo } = decision.certificate;
  const certificate = [
    `    thumbprint  ${thumbprint}`,
    `    subject     ${subject}`,
    `    valid       ${validFrom} to ${validTo}`,
  ].map(visible);
  const lines = certificate.join("\n");
  if (trust !== undefined)
    throw new AgentError("CONFIG_INVALID", `--trust ${trust}: the server shows another certificate\n${lines}`);
  return {
    notes: ["  The server shows this certificate; compare it with what the server itself displays:", ...certificate],
    text: "  Is it the same, and shall the agent trust it?",
    decision: `${url} shows a certificate that the agent does not trust yet\n${lines}\n  compare it with what the server itself displays; --trust ${thumbprint} trusts it`,
    answer: { trust: sha256 },
  };
}
