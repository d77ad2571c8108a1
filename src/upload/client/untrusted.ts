// Why a connection over TLS was not trusted, and what to do about it.
import type { EpochMicros } from "../../core/point.ts";

const unknownAuthority = "its certificate is of an authority that is not trusted; name that in service.caFile";

/** By Node's code. */
const reasons: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID:
    "its certificate is for another name: is service.url right, or does something answer in its place?",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed; name it in service.caFile",
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  /** An authority of the same name as one that is trusted, with another key. */
  CERT_SIGNATURE_FAILURE: unknownAuthority,
};
/** All others that are about certificates. */
const aboutCertificates = /^CERT_|_CERT$|^INVALID_(CA|PURPOSE)$/;

/** Undefined: it was not about trust. `now`: what the clock of this machine says. */
export function untrusted(error: unknown, now: EpochMicros): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  const date = () => new Date(now / 1_000).toISOString().slice(0, 19);
  switch (error.code) {
    case "CERT_HAS_EXPIRED":
      return `its certificate has expired: it must be renewed there, unless the clock here is wrong, which says ${date()}Z`;
    case "CERT_NOT_YET_VALID":
      return `its certificate is not valid yet: is the clock here right? It says ${date()}Z`;
    default: {
      const reason =
        reasons[error.code] ?? (aboutCertificates.test(error.code) ? "its certificate does not hold" : undefined);
      return reason && `${reason} (${error.message})`;
    }
  }
}
