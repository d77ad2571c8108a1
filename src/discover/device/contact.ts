// Decides what a person must decide before the first connection to a typed address. `init` asks the same.
import type { BrowseTarget, KnownCertificate, OfferedEndpoint } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import type { Runtime } from "../../core/runtime.ts";
import { leavesMachine } from "../../lib/network/loopback.ts";
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

/** Undefined: nothing is left to decide. Rejects as `Driver.endpoints` does. */
export async function undecided(
  driver: Driver,
  {
    url,
    username,
    password,
    securityMode,
    trust,
    allowInsecurePassword = false,
  }: OpenRequest & { readonly url: string },
  known: () => Promise<readonly KnownCertificate[]>,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Decision | undefined> {
  const secureUrl = addressOverTls(url);
  if (password !== undefined && !allowInsecurePassword && secureUrl !== undefined && leavesMachine(url))
    return { kind: "clearPassword", secureUrl };
  if (!driver.endpoints) return undefined;
  const offered = await driver.endpoints({ url }, runtime, signal);
  const secure = offered.find((endpoint) => endpoint.secure);
  if (securityMode !== "none") {
    if (secure) return await comparison(secure, trust, known);
    if (securityMode === undefined) return { kind: "noSecurity" };
    return undefined;
  }
  // Here a user name comes with a password, which may be empty.
  if (username === undefined || allowInsecurePassword) return undefined;
  const plain = offered.find(({ logins, security }) => security.startsWith("none") && logins.includes("username"));
  if (!plain) return undefined;
  return plain.passwordInClear === true ? { kind: "clearPassword" } : await comparison(plain, trust, known);
}

/** Undefined: the agent trusts the certificate, or the person has compared exactly this one. */
async function comparison(
  { certificate: thumbprint, sha256 = "", subject = "", validFrom = "", validTo = "" }: OfferedEndpoint,
  trust: string | undefined,
  known: () => Promise<readonly KnownCertificate[]>,
): Promise<Decision | undefined> {
  if (thumbprint === undefined || trust === sha256) return undefined;
  if ((await known()).some((each) => each.state === "trusted" && each.sha256 === sha256)) return undefined;
  return { kind: "certificate", certificate: { sha256, thumbprint, subject, validFrom, validTo } };
}

/** The target of a typed address, with what the person has decided. */
export function withAccess(
  driver: Driver,
  target: BrowseTarget,
  { username, password, securityMode, trust, allowInsecurePassword }: OpenRequest,
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
