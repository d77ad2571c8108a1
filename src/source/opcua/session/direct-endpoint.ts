// An endpoint that the configuration describes, for servers whose endpoints cannot be listed: behind a forwarded port some list
// none, and some do not answer without security.
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { EndpointDescription } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { modes, policyUri } from "../config/security-names.ts";
import type { Ua } from "./stack.ts";
import { uriOf } from "./trust.ts";

/**
 * Undefined where the configuration does not say enough: `security` with the mode and, with security, the policy and the file
 * of the server's certificate. It has no logins: the server names them with the session. Rejects with `SOURCE_REFUSED` where
 * the file cannot be read.
 */
export async function directEndpoint(
  ua: Ua,
  { security, url }: Pick<OpcuaOptions, "security" | "url">,
): Promise<EndpointDescription | undefined> {
  if (!security) return undefined;
  const { mode, policy, serverCertificate: file } = security;
  const common = { endpointUrl: url, securityMode: modes[mode], userIdentityTokens: [] };
  if (mode === "none") return new ua.EndpointDescription({ ...common, securityPolicyUri: policyUri("None") });
  if (policy === undefined || file === undefined) return undefined;
  const certificate = await readCertificate(file);
  return new ua.EndpointDescription({
    ...common,
    securityPolicyUri: policyUri(policy),
    serverCertificate: certificate.raw,
    server: { applicationUri: uriOf(certificate) ?? "" },
  });
}

/** Whether it was made from the configuration: one that a server lists takes some kind of login. */
export function isDirect({ userIdentityTokens }: Pick<EndpointDescription, "userIdentityTokens">): boolean {
  return !userIdentityTokens?.length;
}

async function readCertificate(file: string): Promise<X509Certificate> {
  try {
    return new X509Certificate(await readFile(file));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw new AgentError(
      "SOURCE_REFUSED",
      `security.serverCertificate: ${file} cannot be read as a certificate${code}`,
      {
        cause: error,
      },
    );
  }
}
