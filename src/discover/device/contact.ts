// Decides what a person must decide before the first connection to a typed address. `init` asks the same.
import type { BrowseTarget, KnownCertificate, OfferedEndpoint } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { leavesMachine } from "../../lib/network/listen.ts";
import { addressOverTls, hasOption } from "./protocols.ts";
import type { OpenRequest } from "./requests.ts";

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
