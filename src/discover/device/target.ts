// The device that is browsed: a typed address, or a source of a configuration with its access options. Before the first
// connection to a typed address, finds what a person must decide, here and in `init`.
import { resolve } from "node:path";
import { type Config, sourceAddress } from "../../config/format/config.ts";
import { joinNames } from "../../config/nodes/suggest.ts";
import type { BrowseTarget, KnownCertificate, OfferedEndpoint } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";
import { leavesMachine } from "../../lib/network/listen.ts";
import { holdsUser, shownValue, withoutSecrets } from "../../lib/text/without-secrets.ts";
import { drivers } from "../../source/registry.ts";
import { addressExamples, addressOverTls, driverOfAddress, hasOption } from "./protocols.ts";
import type { OpenRequest } from "./requests.ts";

export interface FoundTarget {
  readonly driver: Driver;
  readonly target: BrowseTarget;
}

/** `login`: where name and password belong. Throws `CONFIG_INVALID` if no driver supports the address. */
export function addressTarget(url: string, login: string): FoundTarget {
  const driver = driverOf(url);
  if (holdsUser(url))
    throw new AgentError(
      "CONFIG_INVALID",
      `${withoutSecrets(url)}: name and password stand in ${login}, not in the address`,
    );
  return { driver, target: { url } };
}

/**
 * The address, login, security and certificates of a configured source. `file`: the configuration as named by the
 * user, for messages. `url` replaces the address of the source. Throws `CONFIG_INVALID` if there is no such source.
 */
export function sourceTarget(
  { agent, sources }: Config,
  { file, source, url }: { readonly file: string; readonly source: string; readonly url?: string | undefined },
): FoundTarget {
  const found = sources.find(({ name }) => name === source);
  if (!found) {
    const names = sources.map(({ name }) => name).join(", ");
    throw new AgentError("CONFIG_INVALID", `${file} has no source ${source}; it has ${names}`);
  }
  const { driver } = found;
  const options: Readonly<Record<string, unknown>> = { ...found.options };
  const address = url ?? sourceAddress(options);
  if (address === undefined) throw new AgentError("CONFIG_INVALID", `source ${source} has no address`);
  const { username, password, security, userCertificate } = options;
  const target: BrowseTarget = {
    url: address,
    ...(typeof username === "string" && { username }),
    ...(password instanceof Secret && { password: password.reveal() }),
    ...(security !== undefined && { security: textsIn(security) }),
    ...(userCertificate !== undefined && { userCertificate: textsIn(userCertificate) }),
    sharedDir: resolve(agent.dataDir),
    agent: agent.name,
    configFile: file,
    options,
  };
  return { driver, target };
}

/** The text members of an option, secrets included. */
function textsIn(option: unknown): Record<string, string> {
  const members = typeof option === "object" && option !== null ? Object.entries(option) : [];
  return Object.fromEntries(
    members.flatMap(([name, value]: [string, unknown]) => {
      if (value instanceof Secret) return [[name, value.reveal()]];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}

/** Throws `CONFIG_INVALID` if no driver supports the address. */
export function driverOf(url: string): Driver {
  const driver = driverOfAddress(url);
  if (driver) return driver;
  const known = drivers.flatMap(({ schemes = [] }) => schemes.map((name) => `${name}:`));
  const networkAddresses = addressExamples().filter((address) => address.includes("host"));
  const host = /^[\w.-]+/.exec(url.replace(/^.*(?::\/\/|@)/s, ""))?.[0] ?? "host";
  throw new AgentError(
    "CONFIG_INVALID",
    `${shownValue(url) || "the address"} must begin with one of ${known.join(" ")}
  as in ${joinNames(networkAddresses, "or").replaceAll("host", () => host)}`,
  );
}

/** What the person has to decide; the answer comes with the next request. */
export type Decision =
  /** Whether the certificate is that of the server. */
  | { readonly kind: "certificate"; readonly certificate: ShownCertificate }
  /** Whether to read without security, as the server offers none. */
  | { readonly kind: "noSecurity" }
  /** Whether the password may cross the network unprotected. `secureUrl`: an address that protects it, if offered. */
  | { readonly kind: "clearPassword"; readonly secureUrl?: string };

type ShownCertificate = Pick<KnownCertificate, "sha256" | "thumbprint" | "subject" | "validFrom" | "validTo">;

/** An address, with what a person has typed and decided. */
export interface Contact extends Omit<OpenRequest, "source"> {
  readonly url: string;
}

/** What a decision depends on. */
export interface ContactFacts {
  /** Undefined: the protocol has no endpoints, or they are not known. */
  readonly offered: () => Promise<readonly OfferedEndpoint[] | undefined>;
  readonly known: () => Promise<readonly KnownCertificate[]>;
}

/** Undefined: nothing is left to decide. Rejects as `facts` do. */
export async function undecided(
  { url, username, password, securityMode, trust, allowInsecurePassword = false }: Contact,
  { offered, known }: ContactFacts,
): Promise<Decision | undefined> {
  const secureUrl = addressOverTls(url);
  if (password !== undefined && !allowInsecurePassword && secureUrl !== undefined && leavesMachine(url))
    return { kind: "clearPassword", secureUrl };
  const endpoints = await offered();
  if (!endpoints) return undefined;
  const secure = endpoints.find((endpoint) => endpoint.secure);
  if (securityMode !== "none") {
    if (secure) return await comparison(secure, trust, known);
    return securityMode === undefined ? { kind: "noSecurity" } : undefined;
  }
  // Here a user name comes with a password, which may be empty.
  if (username === undefined || allowInsecurePassword) return undefined;
  const plain = endpoints.find(({ logins, security }) => security.startsWith("none") && logins.includes("username"));
  if (!plain) return undefined;
  return plain.passwordInClear === true ? { kind: "clearPassword" } : await comparison(plain, trust, known);
}

/** Undefined: the person has compared exactly this certificate, or has compared none and the agent trusts this one. */
async function comparison(
  { certificate: thumbprint, sha256 = "", subject = "", validFrom = "", validTo = "" }: OfferedEndpoint,
  trust: string | undefined,
  known: ContactFacts["known"],
): Promise<Decision | undefined> {
  if (thumbprint === undefined || trust === sha256 || trust === thumbprint) return undefined;
  const trusted = (await known()).some((each) => each.state === "trusted" && each.sha256 === sha256);
  if (trusted && trust === undefined) return undefined;
  return { kind: "certificate", certificate: { sha256, thumbprint, subject, validFrom, validTo } };
}

/** The target of a typed address, with what the person has decided. */
export function withAccess(
  driver: Driver,
  target: BrowseTarget,
  { username, password, securityMode, trust, allowInsecurePassword }: Omit<Contact, "url">,
): BrowseTarget {
  const insecure = allowInsecurePassword === true && hasOption(driver, "allowInsecurePassword");
  return {
    ...target,
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(securityMode !== undefined && { security: { mode: securityMode } }),
    ...(trust !== undefined && { trust }),
    ...(insecure && { options: { ...target.options, allowInsecurePassword: true } }),
  };
}
