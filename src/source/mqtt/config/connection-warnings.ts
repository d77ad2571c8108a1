// Options of a connection that let others read or falsify what is on it.

import type { Secret } from "../../../core/secret.ts";
import type { ConfigWarning } from "../../../core/source.ts";
import { leavesMachine } from "../../../lib/loopback.ts";

interface Connection {
  readonly url: string;
  readonly servers: readonly string[];
  readonly password?: Secret | undefined;
  readonly passwordFile?: string | undefined;
  readonly verify: "full" | "ca" | "none";
}

export function connectionWarnings(connection: Connection): readonly ConfigWarning[] {
  return [...clearTextWarnings(connection), ...unverifiedWarnings(connection)];
}

/** Warns where the password goes to another machine without TLS. */
function clearTextWarnings({ url, servers, password, passwordFile }: Connection): readonly ConfigWarning[] {
  if ((password ?? passwordFile) === undefined || ![url, ...servers].some(isClear)) return [];
  return [
    {
      field: "url",
      message: "is not encrypted: the password and all messages can be read by whoever is on the network",
      hint: "mqtts:// or wss:// where the broker offers it, with caFile where its authority is your own",
    },
  ];
}

/** Warns where any machine on the way can pass for the broker. */
function unverifiedWarnings({ url, servers, verify }: Connection): readonly ConfigWarning[] {
  if (verify !== "none" || ![url, ...servers].some(isTls)) return [];
  return [
    {
      field: "verify",
      message:
        "is none: the certificate of the broker is not verified, so another machine can impersonate it and read the password and all messages",
      hint: "verify: full, with caFile for the certificate of the issuer and serverName where the certificate has another name",
    },
  ];
}

/** Whether the connection to `url` is encrypted. */
export function isTls(url: string): boolean {
  return /^(mqtts|wss):/i.test(url);
}

function isClear(url: string): boolean {
  return /^(mqtt|ws):/i.test(url) && leavesMachine(url);
}
