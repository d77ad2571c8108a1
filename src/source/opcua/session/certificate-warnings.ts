// What is wrong with a server's certificate although an operator trusts it: told for as long as it is so. Pure.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { uriOf } from "./trust.ts";

/** What the certificate is compared with. */
export interface CertificateUse {
  /** Of the server's application, as it describes itself. */
  readonly applicationUri: string | null;
  /** Where it was reached. */
  readonly url: string;
}

/** Shortest key that Basic256Sha256 and its successors take, in bits. */
const shortestKey = 2_048;

/** Empty: nothing. `certificate`: DER; a chain begins with the server's own. */
export function certificateWarnings(certificate: Uint8Array, { applicationUri, url }: CertificateUse): string[] {
  let parsed: X509Certificate;
  try {
    parsed = new X509Certificate(certificate);
  } catch {
    return ["the server's certificate cannot be read"];
  }
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
  return (
    /^opc\.tcp:\/\/(?:\[([^\]]+)\]|([^/:]+))/
      .exec(url)
      ?.slice(1)
      .find((part) => part !== undefined) ?? ""
  );
}

function namesIn({ subjectAltName = "" }: X509Certificate): string {
  return subjectAltName
    .split(", ")
    .filter((name) => !name.startsWith("URI:"))
    .join(", ");
}
