// Watches one server of a redundant set: a session of its own, in which nothing but its service level is read.
import { join } from "node:path";
import type { Runtime } from "../../../core/runtime.ts";
import { isAbort } from "../../../lib/abort.ts";
import type { LinkOptions } from "../session/client.ts";
import { connectionDigest, findEndpoint } from "../session/discovery.ts";
import { type Link, openLink } from "../session/link.ts";
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
  /** Called whenever the level may have changed. */
  readonly changed: () => void;
}

/** Disposing it ends the session. */
export class ServerWatch implements AsyncDisposable {
  readonly url: string;
  readonly #options: ServerWatchOptions;
  readonly #runtime: Runtime;
  readonly #ending = new AbortController();
  readonly #known = Promise.withResolvers<void>();
  readonly #watching: Promise<void>;
  #level: ServiceLevel;
  #failure: string | undefined;
  #set: RedundantSet = { support: undefined, uri: undefined, partners: [] };

  constructor(options: ServerWatchOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.url = options.link.options.url;
    this.#watching = this.#watch();
  }

  get level(): ServiceLevel {
    return this.#level;
  }

  /** Why the level is not known; undefined: it is. */
  get failure(): string | undefined {
    return this.#level === undefined ? this.#failure : undefined;
  }

  /** What the server has told of its set. */
  get set(): RedundantSet {
    return this.#set;
  }

  /** Resolves when the level is known, or the server could not be reached. */
  get known(): Promise<void> {
    return this.#known.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the watch ends"));
    await this.#watching;
  }

  async #watch(): Promise<void> {
    const { signal } = this.#ending;
    const { clock, log } = this.#runtime;
    while (!signal.aborted) {
      try {
        await this.#connect(signal);
      } catch (error) {
        if (isAbort(error, signal)) return;
        const failure = error instanceof Error ? error.message : String(error);
        // Such as a certificate that nobody has trusted yet: to be known before the server is needed.
        if (failure !== this.#failure)
          log.warn({ url: this.url, reason: failure }, "a server of the redundant set cannot be reached");
        this.#failure = failure;
        this.#tell(undefined);
        await clock.sleep(retryEveryMs, signal).catch(() => {});
      }
    }
  }

  async #connect(signal: AbortSignal): Promise<never> {
    const { stack, link: options, dir } = this.#options;
    const { log } = this.#runtime;
    const endpoint = await findEndpoint(stack, options, signal);
    const resumption = await Resumption.open(join(dir, "watch.json"), connectionDigest(options, endpoint), log);
    const link = await openLink(stack, options, endpoint, resumption, log, signal);
    try {
      return await this.#read(link, AbortSignal.any([signal, link.lost]));
    } finally {
      await link.close();
    }
  }

  async #read(link: Link, signal: AbortSignal): Promise<never> {
    const services = new Services(link, { read: 1, browse: 1 });
    this.#set = await readRedundantSet(link, services, this.url, signal);
    for (;;) {
      const [answer] = await readValues(services, [serviceLevel], signal);
      const level: unknown = answer?.value?.value;
      this.#tell(typeof level === "number" ? level : untold);
      await this.#runtime.clock.sleep(readEveryMs, signal);
    }
  }

  #tell(level: ServiceLevel): void {
    const before = this.#level;
    this.#level = level;
    if (level !== undefined) this.#failure = undefined;
    this.#known.resolve();
    if (level !== before) this.#options.changed();
  }
}
