// Passwords that whoever listens on the network can read.

import type { Secret } from "../../core/secret.ts";
import type { ConfigWarning } from "../../core/source.ts";
import { leavesMachine } from "../../lib/loopback.ts";

interface Connection {
  readonly url: string;
  readonly servers: readonly string[];
  readonly password?: Secret | undefined;
  readonly passwordFile?: string | undefined;
}

/** Warns where the password goes to another machine without TLS. */
export function clearTextWarnings({ url, servers, password, passwordFile }: Connection): readonly ConfigWarning[] {
  if ((password ?? passwordFile) === undefined || ![url, ...servers].some(isClear)) return [];
  return [
    {
      field: "url",
      message: "is not encrypted: the password and all messages can be read by whoever is on the network",
      hint: "mqtts:// or wss:// where the broker offers it, with caFile where its authority is your own",
    },
  ];
}

function isClear(url: string): boolean {
  return /^(mqtt|ws):/i.test(url) && leavesMachine(url);
}
