// Listens on an address, and says which hosts are this machine.
import type { Server } from "node:net";
import { AgentError, codeOf } from "../../core/errors.ts";
import type { ListenAddress } from "../values/fields.ts";

const reasons: Readonly<Record<string, string>> = {
  EADDRINUSE: "the port is in use",
  EACCES: "no permission to listen on this port",
  EADDRNOTAVAIL: "this machine has no such address",
};

/** Resolves with the port once listening. Rejects with `PORT_IN_USE`; the message starts with `what`. */
export async function listen(server: Server, { host, port }: ListenAddress, what: string): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      // The listener stays: a later failure to accept a connection (EMFILE) must not end the process.
      server.on("error", reject);
      server.listen({ host, port }, resolve);
    });
  } catch (cause) {
    const why = reasons[String(codeOf(cause))] ?? String(cause);
    throw new AgentError("PORT_IN_USE", `${what} ${hostInUrl(host)}:${port}: ${why}`, { cause });
  }
  const address = server.address();
  return typeof address === "object" && address ? address.port : port;
}

/** The host in the notation of a URL: IPv6 in brackets. */
export function hostInUrl(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Whether `host` names this machine, by name or by address. */
export function isLoopback(host: string): boolean {
  return /^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/i.test(host);
}

/** Whether requests to `url` leave the machine. An invalid URL counts as one that does. */
export function leavesMachine(url: string): boolean {
  return !isLoopback(URL.parse(url)?.hostname ?? "");
}
