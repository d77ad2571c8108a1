// The agent's certificate and those that it trusts, for all sources. The agent trusts none on its own.
import { X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { access, chmod, cp, lchown, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { codeOf, commandLine } from "../../../core/errors.ts";
import { exists } from "../../../lib/files/paths.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { refusal } from "../stack/failure.ts";
import type { CertificateStore, Stack } from "../stack/stack.ts";
import { certificateIn, described, thumbprintOf, uriOf } from "./trust.ts";

export interface Pki extends AsyncDisposable {
  readonly store: CertificateStore;
  readonly folder: string;
  readonly certificateFile: string;
  /** Equals the URI in the certificate, since servers compare the two. */
  readonly applicationUri: string;
  readonly validTo: Date;
  /** SHA-1 of the agent's own certificate in hex, as servers show it. */
  readonly thumbprint: string;
  /**
   * Rejects with `SOURCE_REFUSED` unless an operator trusts the certificate or its issuer. An unknown certificate is
   * kept in `rejected`. `need` begins the message if the reason for the check is not obvious.
   */
  verify(certificate: Uint8Array, need?: string): Promise<void>;
}

export interface PkiOptions {
  readonly agent: string;
  /** Parent of the `pki` folder that all sources share. */
  readonly dir: string;
  /** The agent's configuration file, an argument of the command that trusts a certificate. */
  readonly configFile?: string | undefined;
  /** Advice for an untrusted certificate, by thumbprint. Default: the command that trusts it. */
  readonly remedy?: ((thumbprint: string) => string) | undefined;
}

export function pkiOf({ agent, configFile, stateDir, sharedDir, forbiddenDir }: OpcuaConfig): PkiOptions {
  return { agent, dir: sharedDir ?? stateDir, configFile, remedy: remedyIn(forbiddenDir) };
}

export function remedyIn(forbiddenDir: string | undefined): PkiOptions["remedy"] {
  if (forbiddenDir === undefined) return undefined;
  return () =>
    `this user may not keep it in ${forbiddenDir}: run the same command as the user of the agent, or as root`;
}

const tenYears = 3_650;
const dayMs = 86_400_000;
const ownCertificate = join("own", "certs", "client_certificate.pem");

/** Keyed by folder. The sources of an agent start concurrently; one of them creates the certificate for all. */
const making = new Map<string, Promise<void>>();

/** Opens `pki` in `dir`. The first call creates a key (RSA 3072, mode 0600) and a self-signed certificate. */
export async function openPki(stack: Stack, { agent, dir, configFile, remedy }: PkiOptions): Promise<Pki> {
  const folder = join(dir, "pki");
  const certificateFile = join(folder, ownCertificate);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  if (!(await exists(certificateFile))) {
    const made = making.get(folder) ?? makeOwn(stack, folder, agent).finally(() => making.delete(folder));
    making.set(folder, made);
    await made;
  }
  const store = await openStore(stack, folder);
  await chmod(store.privateKey, 0o600);
  const own = new X509Certificate(await readFile(certificateFile));
  await giveToOwner(folder, dir);
  return {
    store,
    folder,
    certificateFile,
    applicationUri: uriOf(own) ?? `urn:${hostname()}:tagferry:${agent}`,
    validTo: new Date(own.validTo),
    thumbprint: thumbprintOf(own),
    async verify(certificate, need) {
      const status = await store.checkCertificate(Buffer.from(certificate));
      if (status.isGood()) return;
      await giveToOwner(folder, dir);
      const accept = (thumbprint: string) =>
        `${commandLine(["trust", "accept", thumbprint], configFile)}; it waits in ${join(folder, "rejected")}`;
      const what = describe(certificate, status.name, remedy ?? accept);
      const hint = "no login and no password is sent to a server whose certificate is not verified";
      throw refusal(need === undefined ? what : `${need}; ${what}`, hint);
    },
    [Symbol.asyncDispose]: () => store.dispose(),
  };
}

/** Gives `folder`, created by root, to the owner of `dir` if the agent runs as another user. */
async function giveToOwner(folder: string, dir: string): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = await stat(dir);
  if (uid === 0) return;
  const inside = await readdir(folder, { recursive: true });
  for (const path of [folder, ...inside.map((name) => join(folder, name))]) await lchown(path, uid, gid);
}

async function openStore(stack: Stack, rootFolder: string): Promise<CertificateStore> {
  const store = new stack.CertificateStore({
    rootFolder,
    automaticallyAcceptUnknownCertificate: false,
    keySize: 3072,
    disableFileWatchers: true,
  });
  await store.initialize();
  return store;
}

/** Creates key and certificate in a temporary folder, then renames it: other processes may start now. */
async function makeOwn(stack: Stack, folder: string, agent: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const half = await mkdtemp(`${folder}.`);
  try {
    // Keep a key that the operator has provided.
    await cp(join(folder, "own"), join(half, "own"), { recursive: true }).catch(() => {});
    const store = await openStore(stack, half);
    await chmod(store.privateKey, 0o600);
    const host = hostname();
    await store.createSelfSignedCertificate({
      applicationUri: `urn:${host}:tagferry:${agent}`,
      dns: [host],
      outputFile: join(half, ownCertificate),
      subject: `/CN=tagferry ${agent.replaceAll(/[/=,]/g, " ")}/O=tagferry`,
      // Servers whose clock is behind must find it valid, too.
      startDate: new Date(Date.now() - dayMs),
      validity: tenYears,
    });
    await store.dispose();
    const put = () => rename(join(half, "own"), join(folder, "own"));
    await put().catch(async () => {
      // Another process was first, or the folder has no certificate; its key, if any, was used above.
      if (await exists(join(folder, ownCertificate))) return;
      await rename(join(folder, "own"), join(half, "before"));
      await put();
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

function describe(certificate: Uint8Array, status: string, remedy: (thumbprint: string) => string): string {
  const server = certificateIn(certificate);
  if (!server) return `the server's certificate cannot be read (${status})`;
  const thumbprint = thumbprintOf(server);
  const { subject, validFrom, validTo } = described(server);
  const what = `the server's certificate ${thumbprint} (${subject}; ${uriOf(server) ?? "no URI"}; ${validFrom} to ${validTo})`;
  if (status !== "BadCertificateUntrusted")
    return `${what} is refused (${status}); this clock says ${new Date().toISOString()}`;
  return `${what} is not trusted; compare it with the server's own, then: ${remedy(thumbprint)}`;
}

/**
 * `dir`: the agent's data directory, created if it is missing: operators compare and trust certificates before the first
 * run. If this user may not read the agent's key or write there, `dir` is `otherwise`, and `forbidden` the data directory.
 */
export async function probePlace(
  dataDir: string,
  otherwise: string,
): Promise<{ readonly dir: string; readonly forbidden?: string }> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await usable(dataDir);
    const pki = join(dataDir, "pki");
    for (const folder of [pki, join(pki, "rejected"), join(pki, "own/private")]) await usable(folder);
    return { dir: dataDir };
  } catch {
    return { dir: otherwise, forbidden: dataDir };
  }
}

async function usable(folder: string): Promise<void> {
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK).catch((error: unknown) => {
    const missing = codeOf(error) === "ENOENT";
    if (!missing || folder === dirname(folder)) throw error;
  });
}
