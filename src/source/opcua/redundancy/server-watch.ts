// Watches one server of a redundant set by reading its service level in a separate session.
import { join } from "node:path";
import { reasonOf } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import type { LinkOptions } from "../session/client.ts";
import { connectionDigest, findEndpoint } from "../session/discovery.ts";
import { openLink } from "../session/link.ts";
import { openResumption } from "../session/resumption.ts";
import { type RedundantSet, readRedundantSet } from "../session/server-facts.ts";
import { readValues, Services } from "../session/services.ts";
import type { Stack } from "../session/stack.ts";
import type { ServiceLevel } from "./service-level.ts";

/** NodeId of Server_ServiceLevel. */
const serviceLevel = 2267;
const readEveryMs = 1_000;
const retryEveryMs = 5_000;
/** Assumed level of a server that reports none. */
const untold = 255;

/** The state of a server. Both level and failure are undefined until it has answered or failed. */
interface Watched {
  readonly url: string;
  level: ServiceLevel;
  /** Why the level is unknown; undefined if it is known. */
  failure: string | undefined;
  set: RedundantSet;
}

/** Disposing ends the session. */
export type ServerWatch = Readonly<Watched> & AsyncDisposable;

/** `link`: options with this server's address. `dir`: an empty folder, so that no session is resumed. */
export function watchServer(stack: Stack, link: LinkOptions, dir: string, { clock, log }: Runtime): ServerWatch {
  const ending = new AbortController();
  const { signal } = ending;
  const { url } = link.options;
  const none: RedundantSet = { support: undefined, uri: undefined, partners: [] };
  const watched: Watched = { url, level: undefined, failure: undefined, set: none };

  const readLevels = async (): Promise<never> => {
    const endpoint = await findEndpoint(stack, link, signal);
    const resumption = await openResumption(join(dir, "watch.json"), connectionDigest(link, endpoint), log);
    const opened = await openLink(stack, link, endpoint, resumption, log, signal);
    try {
      const until = AbortSignal.any([signal, opened.lost]);
      const services = new Services(opened, { read: 1, browse: 1 });
      watched.set = await readRedundantSet(opened, services, url, until);
      for (;;) {
        const [answer] = await readValues(services, [serviceLevel], until);
        const level: unknown = answer?.value?.value;
        Object.assign(watched, { failure: undefined, level: typeof level === "number" ? level : untold });
        await clock.sleep(readEveryMs, until);
      }
    } finally {
      await opened.close();
    }
  };
  const watch = async () => {
    while (!signal.aborted) {
      try {
        await readLevels();
      } catch (error) {
        if (isAbort(error, signal)) return;
        const failure = reasonOf(error);
        // An operator should know of such faults, for example an untrusted certificate, before this server is needed.
        if (failure !== watched.failure)
          log.warn({ url, reason: failure }, "a server of the redundant set cannot be reached");
        Object.assign(watched, { failure, level: undefined });
        await clock.sleep(retryEveryMs, signal).catch(() => {});
      }
    }
  };
  const watching = watch();
  return Object.assign(watched, {
    async [Symbol.asyncDispose]() {
      ending.abort(new Error("the watch ends"));
      await watching;
    },
  });
}
