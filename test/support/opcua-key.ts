// Pregenerated keys, so that tests need not generate any. Certificates for servers on other stacks need openssl.
import { execFile } from "node:child_process";
import { copyFile, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Puts the key of `agent` or `server` into a certificate folder without a key. */
export async function putKey(whose: "agent" | "server", folder: string): Promise<void> {
  const keys = join(folder, "own/private");
  if (await stat(join(folder, "own")).catch(() => undefined)) return;
  await mkdir(keys, { recursive: true, mode: 0o700 });
  await copyFile(join(import.meta.dirname, `../fixtures/opcua/${whose}-key.pem`), join(keys, "private_key.pem"));
}

export interface ServerIdentity {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/**
 * A self-signed certificate for a server with this application URI at 127.0.0.1, in the format that its stack reads.
 */
export async function serverIdentity(folder: string, uri: string, form: "pem" | "der"): Promise<ServerIdentity> {
  await mkdir(folder, { recursive: true });
  const fixture = join(import.meta.dirname, "../fixtures/opcua/server-key.pem");
  const [certificateFile, keyFile] = ["certificate", "key"].map((name) => join(folder, `${name}.${form}`)) as [
    string,
    string,
  ];
  const extensions = [
    `subjectAltName=URI:${uri},IP:127.0.0.1`,
    "keyUsage=digitalSignature,nonRepudiation,keyEncipherment,dataEncipherment,keyCertSign",
    "extendedKeyUsage=serverAuth,clientAuth",
  ].flatMap((extension) => ["-addext", extension]);
  const request = ["req", "-x509", "-key", fixture, "-subj", "/CN=line", "-days", "30", ...extensions];
  // The stack of the test server sets it to "undefined".
  const { OPENSSL_CONF: _, ...env } = process.env;
  await run("openssl", [...request, "-outform", form, "-out", certificateFile], { env });
  await run("openssl", ["rsa", "-in", fixture, "-outform", form, "-out", keyFile], { env });
  return { certificateFile, keyFile };
}
