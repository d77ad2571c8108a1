// The certificates of servers that the agent knows: those it trusts, and those that wait in `rejected` for an operator.
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import type { KnownCertificate } from "../../../core/commissioning.ts";

const folders = {
  trusted: "trusted/certs",
  rejected: "rejected",
  issuer: "issuers/certs",
  own: "own/certs",
} as const;
const states = ["trusted", "rejected", "issuer", "own"] as const;

/** All of them. `dir`: where `pki` is, the agent's data directory. Files that are no certificates are passed by. */
export async function listCertificates(dir: string): Promise<KnownCertificate[]> {
  return (await find(dir)).map(({ folder, name, certificate, state }) => ({
    thumbprint: thumbprintOf(certificate),
    sha256: sha256Of(certificate),
    subject: certificate.subject.replaceAll("\n", ", "),
    applicationUri: uriOf(certificate),
    validFrom: certificate.validFrom,
    validTo: certificate.validTo,
    state,
    path: join(folder, name),
  }));
}

/** Trusts a certificate that was refused; the next connection sees it. `thumbprint`: SHA-1 or SHA-256. False: there is none. */
export function trustCertificate(dir: string, thumbprint: string): Promise<boolean> {
  return move(dir, thumbprint, "trusted");
}

/** Trusts a certificate no longer. `thumbprint`: SHA-1 or SHA-256. False: there is none. */
export function rejectCertificate(dir: string, thumbprint: string): Promise<boolean> {
  return move(dir, thumbprint, "rejected");
}

async function move(dir: string, thumbprint: string, to: "trusted" | "rejected"): Promise<boolean> {
  const wanted = thumbprint.replaceAll(":", "").toLowerCase();
  const found = (await find(dir)).filter(
    ({ certificate, state }) =>
      (state === "trusted" || state === "rejected") &&
      [thumbprintOf(certificate), sha256Of(certificate)].includes(wanted),
  );
  const target = join(dir, "pki", folders[to]);
  if (found.length > 0) await mkdir(target, { recursive: true, mode: 0o700 });
  for (const { folder, name } of found) await rename(join(folder, name), join(target, name));
  return found.length > 0;
}

async function find(dir: string) {
  const found: { folder: string; name: string; certificate: X509Certificate; state: KnownCertificate["state"] }[] = [];
  for (const state of states) {
    const folder = join(dir, "pki", folders[state]);
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

/** Of any certificate, in hex. */
export function sha256Of(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(":", "").toLowerCase();
}

/** URI of the application that a certificate was made for. */
export function uriOf(certificate: X509Certificate): string | undefined {
  return /URI:([^,\s]+)/.exec(certificate.subjectAltName ?? "")?.[1];
}

/** Of any certificate, as in the thumbprints here. */
export function thumbprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint.replaceAll(":", "").toLowerCase();
}
