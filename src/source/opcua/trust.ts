// The certificates of servers that a source knows: those it trusts, and those that wait in `rejected` for an operator.
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";

export interface KnownCertificate {
  /** SHA-1 in hex, as OPC UA names certificates. */
  readonly thumbprint: string;
  readonly subject: string;
  readonly validFrom: string;
  readonly validTo: string;
  readonly state: "trusted" | "rejected" | "issuer";
}

const folders = { trusted: "trusted/certs", rejected: "rejected", issuer: "issuers/certs" } as const;

/** All of them. `stateDir`: that of the source. Files that are no certificates are passed by. */
export async function listCertificates(stateDir: string): Promise<KnownCertificate[]> {
  return (await find(stateDir)).map(({ certificate, state }) => ({
    thumbprint: thumbprintOf(certificate),
    subject: certificate.subject.replaceAll("\n", ", "),
    validFrom: certificate.validFrom,
    validTo: certificate.validTo,
    state,
  }));
}

/** Trusts a certificate that was refused; the next connection sees it. False: there is none of this thumbprint. */
export function trustCertificate(stateDir: string, thumbprint: string): Promise<boolean> {
  return move(stateDir, thumbprint, "trusted");
}

/** Trusts a certificate no longer. False: there is none of this thumbprint. */
export function rejectCertificate(stateDir: string, thumbprint: string): Promise<boolean> {
  return move(stateDir, thumbprint, "rejected");
}

async function move(stateDir: string, thumbprint: string, to: "trusted" | "rejected"): Promise<boolean> {
  const wanted = thumbprint.replaceAll(":", "").toLowerCase();
  const found = (await find(stateDir)).filter(({ certificate }) => thumbprintOf(certificate) === wanted);
  const target = join(stateDir, "pki", folders[to]);
  await mkdir(target, { recursive: true, mode: 0o700 });
  for (const { folder, name, state } of found)
    if (state !== "issuer") await rename(join(folder, name), join(target, name));
  return found.length > 0;
}

async function find(stateDir: string) {
  const found: { folder: string; name: string; certificate: X509Certificate; state: KnownCertificate["state"] }[] = [];
  for (const state of ["trusted", "rejected", "issuer"] as const) {
    const folder = join(stateDir, "pki", folders[state]);
    for (const name of await readdir(folder).catch(() => [])) {
      const certificate = await readFile(join(folder, name)).then(parse, () => undefined);
      if (certificate) found.push({ folder, name, certificate, state });
    }
  }
  return found;
}

function parse(content: Buffer): X509Certificate | undefined {
  try {
    return new X509Certificate(content);
  } catch {
    return undefined;
  }
}

/** Of any certificate, as in the thumbprints here. */
export function thumbprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint.replaceAll(":", "").toLowerCase();
}
