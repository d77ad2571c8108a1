// The agent's own certificate and the certificates it trusts, in one folder for all of its sources. Nothing is trusted by itself.
import { X509Certificate } from "node:crypto";
import { constants } from "node:fs";
import { access, chmod, cp, lchown, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { commandLine } from "../../../lib/command-line.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { refusal } from "./failure.ts";
import type { CertificateStore, Stack } from "./stack.ts";
import { certificateIn, described, thumbprintOf, uriOf } from "./trust.ts";

export interface Pki extends AsyncDisposable {
  readonly store: CertificateStore;
  readonly folder: string;
  readonly certificateFile: string;
  /** As it stands in the certificate: servers compare the two. */
  readonly applicationUri: string;
  readonly validTo: Date;
  /** SHA-1 of the agent's own certificate in hex, as servers show it. */
  readonly thumbprint: string;
  /**
   * Rejects with `SOURCE_REFUSED` unless an operator trusts the certificate or its issuer; an unknown one is kept in
   * `rejected`. `need` begins the message where it is not obvious why the certificate matters.
   */
  verify(certificate: Uint8Array, need?: string): Promise<void>;
}

export interface PkiOptions {
  readonly agent: string;
  /** Where `pki` is, or is made: the folder that all sources share. */
  readonly dir: string;
  /** Configuration of the agent, for the command that trusts a certificate. */
  readonly configFile?: string | undefined;
  /** What to do about a certificate that is not trusted, by its thumbprint; default: the command that trusts it. */
  readonly remedy?: ((thumbprint: string) => string) | undefined;
}

export function pkiOf({ agent, configFile, stateDir, sharedDir, forbiddenDir }: OpcuaConfig): PkiOptions {
  return { agent, dir: sharedDir ?? stateDir, configFile, remedy: remedyIn(forbiddenDir) };
}

/** What to do about a certificate where this user may not keep it in the agent's data directory. */
export function remedyIn(forbiddenDir: string | undefined): PkiOptions["remedy"] {
  if (forbiddenDir === undefined) return undefined;
  return () =>
    `this user may not keep it in ${forbiddenDir}: run the same command as the user of the agent, or as root`;
}

const tenYears = 3_650;
const dayMs = 86_400_000;
const ownCertificate = join("own", "certs", "client_certificate.pem");

/** By folder: the sources of an agent begin at the same time, and one of them makes it for all. */
const making = new Map<string, Promise<void>>();

/** Opens the folder `pki` in `dir`. The first time it makes a key (RSA 3072, mode 0600) and a self-signed certificate. */
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

/** Gives `folder` to the owner of `dir`, if root created it in the data directory of an agent that runs as another user. */
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

/** Makes key and certificate beside the folder, complete before they are seen: a command may begin at the same time as the agent. */
async function makeOwn(stack: Stack, folder: string, agent: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const half = await mkdtemp(`${folder}.`);
  try {
    // A key that the operator provides is used.
    await cp(join(folder, "own"), join(half, "own"), { recursive: true }).catch(() => {});
    const store = await openStore(stack, half);
    await chmod(store.privateKey, 0o600);
    const host = hostname();
    await store.createSelfSignedCertificate({
      applicationUri: `urn:${host}:tagferry:${agent}`,
      dns: [host],
      outputFile: join(half, ownCertificate),
      subject: `/CN=tagferry ${agent.replaceAll(/[/=,]/g, " ")}/O=tagferry`,
      // Servers whose clock is behind ours must find it valid, too.
      startDate: new Date(Date.now() - dayMs),
      validity: tenYears,
    });
    await store.dispose();
    const put = () => rename(join(half, "own"), join(folder, "own"));
    await put().catch(async () => {
      // Somebody was first; or there is a folder without a certificate, whose key is used above.
      if (await exists(join(folder, ownCertificate))) return;
      await rename(join(folder, "own"), join(half, "before"));
      await put();
    });
  } finally {
    await rm(half, { recursive: true, force: true });
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** The certificate and what is wrong with it, with the command that mends it where there is one. */
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

export interface ProbePlace {
  readonly dir: string;
  /** The agent's data directory where this user may not use it: then `dir` is another one, and nothing in it is kept. */
  readonly forbidden?: string;
}

/**
 * The data directory of the agent, made where it is missing: it is before the first run that certificates have to be compared
 * and trusted on both sides. `otherwise` where this user may not read the agent's key or write there.
 */
export async function probePlace(dataDir: string, otherwise: string): Promise<ProbePlace> {
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
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!missing || folder === dirname(folder)) throw error;
  });
}
