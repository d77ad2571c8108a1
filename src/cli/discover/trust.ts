// `tagferry trust`: certificates of devices. The operator compares and decides; nothing is trusted automatically.
import { loadConfig } from "../../config/load.ts";
import type { KnownCertificate } from "../../core/commissioning.ts";
import { certificateStores, knownCertificates, protocolsWith } from "../../discover/device/protocols.ts";
import { visible } from "../../lib/text/visible.ts";
import type { ConfigOptions } from "../shared/arguments.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { printResult } from "../terminal/text.ts";

/** Prints every certificate that the agent knows. If no source uses certificates, prints a note and no error. */
export async function listTrust(options: ConfigOptions, io: Console): Promise<void> {
  const folder = await trustFolder(options, io);
  const known = folder === undefined ? [] : await knownCertificates(folder);
  const none = folder === undefined ? [] : ["no certificates yet: a server's is kept at the first attempt to connect"];
  printResult(options, known, () => (known.length === 0 ? none : known.flatMap(shown)), io);
}

const consequences = {
  accept: "trusted from the next attempt to connect on",
  reject: "trusted no longer; a connection that stands goes on until it ends or the agent restarts",
};

export async function decideTrust(
  decision: "accept" | "reject",
  thumbprint: string,
  options: ConfigOptions,
  io: Console,
): Promise<ExitStatus | void> {
  const folder = await trustFolder(options, io);
  if (folder === undefined) return exitStatus.failed;
  const act = decision === "accept" ? "trust" : "reject";
  const done = await Promise.all(certificateStores().map((store) => store[act](folder, thumbprint)));
  const wanted = thumbprint.replaceAll(":", "").toLowerCase();
  const known = await knownCertificates(folder);
  const certificate = known.find((each) => [each.thumbprint, each.sha256].includes(wanted));
  if (!done.includes(true)) throw new CommandFailed(whyNot(thumbprint, certificate), exitStatus.usage);
  printResult(options, certificate, () => [...(certificate ? shown(certificate) : []), consequences[decision]], io);
}

/** Why there is nothing to decide. */
function whyNot(thumbprint: string, certificate: KnownCertificate | undefined): string {
  const name = visible(thumbprint);
  if (!certificate) return `there is no certificate ${name}; tagferry trust list shows those there are`;
  const whose = certificate.state === "own" ? "the agent's own, which servers trust or reject" : "that of an issuer";
  return `${name} is not the certificate of a server but ${whose}; nothing was changed`;
}

function shown(certificate: KnownCertificate): readonly string[] {
  const { state, thumbprint, sha256, subject, applicationUri, validFrom, validTo, path } = certificate;
  const whose = state === "own" ? "own, for the server to trust" : state;
  return [
    `${thumbprint} (${whose})`,
    `  SHA-256      ${sha256}`,
    `  subject      ${subject}`,
    `  application  ${applicationUri ?? "names none"}`,
    `  valid        ${validFrom} to ${validTo}`,
    `  file         ${path}`,
  ].map(visible);
}

/** The folder of the certificates. Undefined, with a message, if no source uses certificates. */
async function trustFolder({ config: file }: ConfigOptions, io: Console): Promise<string | undefined> {
  const { agent, sources } = await loadConfig(file, io.environment);
  if (sources.some(({ driver }) => driver.certificates)) return agent.dataDir;
  io.complain(`tagferry: ${file} has no ${protocolsWith("certificates")} source`);
  return undefined;
}
