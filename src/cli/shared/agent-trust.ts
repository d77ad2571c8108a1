// Which certificates of agents the commands of this process trust.
import { X509Certificate } from "node:crypto";
import { checkServerIdentity, getCACertificates, setDefaultCACertificates } from "node:tls";
import type { Dispatcher } from "undici";
import { lineIn } from "../../config/files/environment.ts";
import { reasonOf } from "../../core/errors.ts";
import { CommandFailed, exitStatus } from "../terminal/exit-status.ts";

export type AgentReply = { readonly status: number; readonly body: AsyncIterable<Uint8Array> | null };
interface Asked {
  readonly method: "GET" | "POST";
  readonly headers: Record<string, string>;
  readonly redirect: "error";
  readonly signal: AbortSignal;
}

/** Set by `trustExactly`. */
let pinned: Dispatcher | undefined;

/** Trusts the authorities or certificates in the file of `--ca-file`, next to those of Node, in this process. */
export async function trustAlso(caFile: string): Promise<void> {
  const pem = await flagFile(caFile, "--ca-file");
  // Node ignores a text without a certificate.
  if (!pem.includes("-----BEGIN CERTIFICATE-----"))
    throw new CommandFailed(`--ca-file ${caFile} has no certificate; expected a PEM file`, exitStatus.usage);
  trust(pem);
}

export function trust(pem: string): void {
  setDefaultCACertificates([...getCACertificates("default"), pem]);
}

/** The content of a file named with a flag. Rejects with wrong use if it cannot be read. */
export async function flagFile(file: string, flag: string): Promise<string> {
  try {
    return await lineIn(file, flag, "CONFIG_INVALID");
  } catch (error) {
    throw new CommandFailed(reasonOf(error), exitStatus.usage);
  }
}

/** Trusts this certificate at any address, in this process. Others are judged as usual, all where `pem` holds none. */
export async function trustExactly(pem: string): Promise<void> {
  if (!pem.includes("-----BEGIN CERTIFICATE-----")) return;
  const { fingerprint256 } = new X509Certificate(pem);
  const { Agent } = await import("undici");
  pinned = new Agent({
    connect: {
      ca: [...getCACertificates("default"), pem],
      allowPartialTrustChain: true,
      checkServerIdentity: (host, certificate) =>
        certificate.fingerprint256 === fingerprint256 ? undefined : checkServerIdentity(host, certificate),
    },
  });
}

/** What sends requests. The `fetch` of Node takes no dispatcher of the package. */
export async function asker(): Promise<(target: URL, init: Asked) => Promise<AgentReply>> {
  const dispatcher = pinned;
  if (!dispatcher) return fetch;
  const { request } = await import("undici");
  return async (target, { method, headers, signal }) => {
    const { statusCode, body } = await request(target, { method, headers, signal, dispatcher });
    return { status: statusCode, body };
  };
}
