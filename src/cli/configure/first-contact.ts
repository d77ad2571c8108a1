// Decides in `init`, before the first connection to a server: accept its certificate, or connect without security.

import type { BrowseTarget, OfferedEndpoint } from "../../core/commissioning.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import { addressOverTls, driverOfAddress, knownCertificates } from "../../discover/protocols.ts";
import { leavesMachine } from "../../lib/network/loopback.ts";
import { visible } from "../../lib/text/visible.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { SourceAnswers } from "./init-options.ts";
import { confirmed, type Interview, type SourceInterview } from "./question.ts";

interface FirstContact {
  /** `security.mode` of the source; undefined: the best that the server offers. */
  readonly securityMode: SourceAnswers["securityMode"];
  readonly target: Omit<BrowseTarget, "url">;
  /** Empty: the protocol has no endpoints, or the request for them failed. */
  readonly offered: readonly OfferedEndpoint[];
}

/** Asks nothing if the protocol has no endpoints or the request for them fails. Rejects as `answer` does. */
export async function firstContact(given: SourceAnswers, interview: SourceInterview): Promise<FirstContact> {
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
export async function passwordWithoutSecurity(
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
export async function loginAllowed(
  { url, allowInsecurePassword }: SourceAnswers,
  interview: Interview,
): Promise<boolean> {
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
