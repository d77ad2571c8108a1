// Who logs in at a server: an anonymous user, a user with a password, or a user with a certificate and its key.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { UserIdentityInfo } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import type { OpcuaOptions } from "../config/options.ts";
import type { Stack } from "./stack.ts";

/** Reads what the login needs. Rejects with `SOURCE_REFUSED` where certificate or key cannot be read or do not belong together. */
export async function identityOf(
  { ua }: Stack,
  { username, password, userCertificate }: Pick<OpcuaOptions, "username" | "password" | "userCertificate">,
): Promise<UserIdentityInfo> {
  if (userCertificate) {
    const { certFile, keyFile, keyPassphrase } = userCertificate;
    const certificate = await read(certFile, (content) => new X509Certificate(content));
    const passphrase = keyPassphrase?.reveal();
    const key = await read(keyFile, (content) =>
      createPrivateKey({ key: content, ...(passphrase !== undefined && { passphrase }) }),
    );
    if (!certificate.checkPrivateKey(key))
      throw new AgentError("SOURCE_REFUSED", `userCertificate: the key in ${keyFile} is not that of ${certFile}`, {
        hint: "set certFile and keyFile to files that belong together",
      });
    const ends = new Date(certificate.validTo);
    if (ends.getTime() < Date.now())
      throw new AgentError("SOURCE_REFUSED", `userCertificate: ${certFile} expired on ${ends.toISOString()}`, {
        hint: "renew the certificate of the user; if it is still valid, set the clock of this machine",
      });
    return {
      type: ua.UserTokenType.Certificate,
      certificateData: certificate.raw,
      privateKey: key.export({ type: "pkcs8", format: "pem" }).toString(),
    };
  }
  if (username === undefined) return { type: ua.UserTokenType.Anonymous };
  return { type: ua.UserTokenType.UserName, userName: username, password: password?.reveal() ?? "" };
}

async function read<T>(file: string, parse: (content: Buffer) => T): Promise<T> {
  try {
    return parse(await readFile(file));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    const why =
      code === "ENOENT"
        ? "there is no such file"
        : code === "EACCES"
          ? "no permission"
          : "not a certificate or key in PEM or DER, or the passphrase is wrong";
    throw new AgentError("SOURCE_REFUSED", `userCertificate: ${file}: ${why}`, {
      cause: error,
      hint: "correct userCertificate, or let the user of the agent read the file",
    });
  }
}
