// The server certificates that the agent trusts, and those in `rejected` that an operator has to review.
import { X509Certificate } from "node:crypto";
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import type { KnownCertificate } from "../../../core/commissioning.ts";
import { attempt } from "../../../lib/flow/attempt.ts";

const folders = { trusted: "trusted/certs", rejected: "rejected", issuer: "issuers/certs", own: "own/certs" } as const;
const states = ["trusted", "rejected", "issuer", "own"] as const;

/** `dir`: the agent's data directory, parent of `pki`. Skips files that are not certificates. */
export async function listCertificates(dir: string): Promise<KnownCertificate[]> {
  return (await find(dir)).map(({ folder, name, certificate, state }) => ({
    thumbprint: thumbprintOf(certificate),
    ...described(certificate),
    applicationUri: uriOf(certificate),
    state,
    path: join(folder, name),
  }));
}

/** Trusts a rejected certificate from the next connection on. `thumbprint`: SHA-1 or SHA-256. False if unknown. */
export function trustCertificate(dir: string, thumbprint: string): Promise<boolean> {
  return move(dir, thumbprint, "trusted");
}

/** Revokes the trust in a certificate. `thumbprint`: SHA-1 or SHA-256. False if unknown. */
export function rejectCertificate(dir: string, thumbprint: string): Promise<boolean> {
  return move(dir, thumbprint, "rejected");
}

async function move(dir: string, thumbprint: string, to: "trusted" | "rejected"): Promise<boolean> {
  const found = (await find(dir))
    .filter(({ state }) => state === "trusted" || state === "rejected")
    .filter(({ certificate }) => isCalled(certificate, thumbprint));
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
      const certificate = await readFile(join(folder, name)).then(certificateIn, () => undefined);
      if (certificate) found.push({ folder, name, certificate, state });
    }
  }
  return found;
}

/** Reads DER or PEM; of a chain, the first certificate. Undefined if it is invalid. */
export function certificateIn(content: Uint8Array): X509Certificate | undefined {
  return attempt(() => new X509Certificate(content));
}

/** Fields by which an operator compares certificates. */
export function described(certificate: X509Certificate) {
  const { validFrom, validTo } = certificate;
  return { sha256: sha256Of(certificate), subject: certificate.subject.replaceAll("\n", ", "), validFrom, validTo };
}

function sha256Of(certificate: X509Certificate): string {
  return certificate.fingerprint256.replaceAll(":", "").toLowerCase();
}

/** `thumbprint`: SHA-1 or SHA-256, in any case, with or without colons. */
export function isCalled(certificate: X509Certificate, thumbprint: string): boolean {
  return [thumbprintOf(certificate), sha256Of(certificate)].includes(thumbprint.replaceAll(":", "").toLowerCase());
}

export function uriOf(certificate: X509Certificate): string | undefined {
  return /URI:([^,\s]+)/.exec(certificate.subjectAltName ?? "")?.[1];
}

/** SHA-1 in lower-case hex without colons. */
export function thumbprintOf(certificate: X509Certificate): string {
  return certificate.fingerprint.replaceAll(":", "").toLowerCase();
}

/** Shortest key that Basic256Sha256 and its successors accept, in bits. */
const shortestKey = 2_048;

/**
 * Faults of the trusted certificate of the server at `url`, which reports `applicationUri`. `certificate`: DER; of a
 * chain, the server's own comes first.
 */
export function certificateWarnings(certificate: Uint8Array, url: string, applicationUri: string | null): string[] {
  const parsed = certificateIn(certificate);
  if (!parsed) return ["the server's certificate cannot be read"];
  const warnings: string[] = [];
  const uri = uriOf(parsed);
  if (uri !== (applicationUri ?? undefined))
    warnings.push(
      `the server's certificate is for the application ${uri ?? "(none)"}, the server calls itself ${applicationUri ?? "(nothing)"}`,
    );
  const host = hostOf(url);
  const fits = isIP(host) === 0 ? parsed.checkHost(host, { subject: "never" }) : parsed.checkIP(host);
  if (fits === undefined)
    warnings.push(`the server's certificate does not name the host ${host}; it has ${namesIn(parsed) || "no names"}`);
  const bits = parsed.publicKey.asymmetricKeyDetails?.modulusLength;
  if (bits !== undefined && bits < shortestKey)
    warnings.push(`the key of the server's certificate has ${bits} bits; ${shortestKey} are the least that is secure`);
  return warnings;
}

function hostOf(url: string): string {
  const [, literal, name = ""] = /^opc\.tcp:\/\/(?:\[([^\]]+)\]|([^/:]+))/.exec(url) ?? [];
  return literal ?? name;
}

function namesIn({ subjectAltName = "" }: X509Certificate): string {
  return subjectAltName
    .split(", ")
    .filter((name) => !name.startsWith("URI:"))
    .join(", ");
}
