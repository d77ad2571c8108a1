// Watches one server of a redundant set: a session of its own, in which nothing but its service level is read.

import { join } from "node:path";
import { reasonOf } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { isAbort } from "../../../lib/abort.ts";
import type { LinkOptions } from "../session/client.ts";
import { connectionDigest, findEndpoint } from "../session/discovery.ts";
import { openLink } from "../session/link.ts";
import { Resumption } from "../session/resumption.ts";
import { type RedundantSet, readRedundantSet } from "../session/server-facts.ts";
import { readValues, Services } from "../session/services.ts";
import type { Stack } from "../session/stack.ts";
import type { ServiceLevel } from "./service-level.ts";

/** Server_ServiceLevel. */
const serviceLevel = 2267;

const readEveryMs = 1_000;
const retryEveryMs = 5_000;
/** What a server is worth that does not tell. */
const untold = 255;

export interface ServerWatchOptions {
  readonly stack: Stack;
  /** Those of the source, with the address of this server. */
  readonly link: LinkOptions;
  /** A folder in which nothing is: the session is not taken up again. */
  readonly dir: string;
}

/** What is known of a server now. Before it has answered or failed, it has neither level nor failure. */
interface Watched {
  readonly url: string;
  level: ServiceLevel;
  /** Why the level is not known; undefined: it is. */
  failure: string | undefined;
  /** What the server has told of its set. */
  set: RedundantSet;
}

/** Disposing it ends the session. */
export type ServerWatch = Readonly<Watched> & AsyncDisposable;

export function watchServer(options: ServerWatchOptions, runtime: Runtime): ServerWatch {
  const ending = new AbortController();
  const watched: Watched = {
    url: options.link.options.url,
    level: undefined,
    failure: undefined,
    set: { support: undefined, uri: undefined, partners: [] },
  };
  const watching = watch(watched, options, runtime, ending.signal);
  return Object.assign(watched, {
    async [Symbol.asyncDispose]() {
      ending.abort(new Error("the watch ends"));
      await watching;
    },
  });
}

async function watch(watched: Watched, options: ServerWatchOptions, runtime: Runtime, signal: AbortSignal) {
  while (!signal.aborted) {
    try {
      await readLevels(watched, options, runtime, signal);
    } catch (error) {
      if (isAbort(error, signal)) return;
      const failure = reasonOf(error);
      // Such as a certificate that nobody has trusted yet: to be known before the server is needed.
      if (failure !== watched.failure)
        runtime.log.warn({ url: watched.url, reason: failure }, "a server of the redundant set cannot be reached");
      Object.assign(watched, { failure, level: undefined });
      await runtime.clock.sleep(retryEveryMs, signal).catch(() => {});
    }
  }
}

async function readLevels(
  watched: Watched,
  { stack, link: options, dir }: ServerWatchOptions,
  { clock, log }: Runtime,
  end: AbortSignal,
): Promise<never> {
  const endpoint = await findEndpoint(stack, options, end);
  const resumption = await Resumption.open(join(dir, "watch.json"), connectionDigest(options, endpoint), log);
  const link = await openLink(stack, options, endpoint, resumption, log, end);
  try {
    const signal = AbortSignal.any([end, link.lost]);
    const services = new Services(link, { read: 1, browse: 1 });
    watched.set = await readRedundantSet(link, services, watched.url, signal);
    for (;;) {
      const [answer] = await readValues(services, [serviceLevel], signal);
      const level: unknown = answer?.value?.value;
      Object.assign(watched, { failure: undefined, level: typeof level === "number" ? level : untold });
      await clock.sleep(readEveryMs, signal);
    }
  } finally {
    await link.close();
  }
}
