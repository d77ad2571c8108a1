// `tagferry trust`: which OPC UA servers the agent believes. A person compares and decides; nothing is trusted by itself.
import { join } from "node:path";
import { loadConfig } from "../config/load.ts";
import { type KnownCertificate, listCertificates, rejectCertificate, trustCertificate } from "../source/opcua/trust.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { visible } from "./table.ts";

export interface TrustOptions {
  /** Configuration of the agent: its data directory holds the certificates. */
  readonly config: string;
  readonly source?: string;
  readonly json?: boolean;
}

interface SourceTrust {
  readonly source: string;
  readonly stateDir: string;
}

/** Prints every certificate that the OPC UA sources know. */
export async function listTrust(options: TrustOptions, io: Console): Promise<ExitStatus> {
  const sources = await opcuaSources(options, io);
  if (!sources) return exitStatus.failed;
  const known = await Promise.all(
    sources.map(async ({ source, stateDir }) =>
      (await listCertificates(stateDir)).map((certificate) => ({ source, ...certificate })),
    ),
  );
  if (options.json === true) io.print(JSON.stringify(known.flat(), undefined, 2));
  else {
    for (const { source, ...certificate } of known.flat())
      for (const line of shown(source, certificate)) io.print(line);
    if (known.flat().length === 0) io.print("no certificates yet: a server's is kept at the first attempt to connect");
  }
  return exitStatus.done;
}

/** Trusts one that was refused, from the next attempt to connect on. */
export function acceptTrust(thumbprint: string, options: TrustOptions, io: Console): Promise<ExitStatus> {
  return decide(
    thumbprint,
    { ...options, act: trustCertificate, says: "trusted from the next attempt to connect on" },
    io,
  );
}

/** Trusts one no longer. A connection that stands goes on until it ends. */
export function rejectTrust(thumbprint: string, options: TrustOptions, io: Console): Promise<ExitStatus> {
  const says = "trusted no longer; a connection that stands goes on until it ends or the agent restarts";
  return decide(thumbprint, { ...options, act: rejectCertificate, says }, io);
}

interface Decision extends TrustOptions {
  readonly act: (stateDir: string, thumbprint: string) => Promise<boolean>;
  readonly says: string;
}

async function decide(thumbprint: string, decision: Decision, io: Console): Promise<ExitStatus> {
  const sources = await opcuaSources(decision, io);
  if (!sources) return exitStatus.failed;
  let decided = 0;
  for (const { source, stateDir } of sources) {
    if (!(await decision.act(stateDir, thumbprint))) continue;
    decided++;
    const wanted = thumbprint.replaceAll(":", "").toLowerCase();
    const certificate = (await listCertificates(stateDir)).find((each) =>
      [each.thumbprint, each.sha256].includes(wanted),
    );
    if (certificate) for (const line of shown(source, certificate)) io.print(line);
    io.print(`${source}: ${decision.says}`);
  }
  if (decided > 0) return exitStatus.done;
  io.complain(`tagferry: there is no certificate ${visible(thumbprint)}; tagferry trust list shows those there are`);
  return exitStatus.failed;
}

function shown(
  source: string,
  { state, thumbprint, sha256, subject, applicationUri, validFrom, validTo, path }: KnownCertificate,
): readonly string[] {
  const whose = state === "own" ? "own, for the server to trust" : state;
  return [
    `${source}: ${thumbprint} (${whose})`,
    `  SHA-256      ${sha256}`,
    `  subject      ${subject}`,
    `  application  ${applicationUri ?? "names none"}`,
    `  valid        ${validFrom} to ${validTo}`,
    `  file         ${path}`,
  ].map(visible);
}

/** Undefined, after a word, where there is none. */
async function opcuaSources({ config: file, source }: TrustOptions, io: Console): Promise<SourceTrust[] | undefined> {
  const config = await loadConfig(file, io.environment);
  const found = config.sources.filter(
    ({ name, driver }) => driver.type === "opcua" && (source === undefined || name === source),
  );
  if (found.length === 0) {
    io.complain(`tagferry: ${file} has no OPC UA source${source === undefined ? "" : ` of the name ${source}`}`);
    return undefined;
  }
  return found.map(({ name }) => ({ source: name, stateDir: join(config.agent.dataDir, "sources", name) }));
}
