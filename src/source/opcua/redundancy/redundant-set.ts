// A non-transparent redundant set: one of its servers is used, all are watched, and another is gone on with where the one in
// use can serve no longer, or clearly worse (OPC 10000-4, 6.6.2.4).
import { join } from "node:path";
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Source } from "../../../core/source.ts";
import { isAbort, orAbort } from "../../../lib/abort.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { openOpcua } from "../connection/open.ts";
import type { OpcuaSource } from "../connection/source.ts";
import { identityOf } from "../session/login.ts";
import { openPki, remedyIn } from "../session/pki.ts";
import { partnerAdvice } from "../session/server-facts.ts";
import { loadStack } from "../session/stack.ts";
import { ServerWatch } from "./server-watch.ts";
import { chooseServer, holdMs, isHealthy, RedundancyMemory } from "./service-level.ts";

const failOvers = {
  name: "source_opcua_fail_overs_total",
  help: "Times that another server of a redundant set was gone on with.",
  labels: ["source"],
} as const;

/** How long a server that is healthy waits for others to answer. */
const patienceMs = 3_000;

const watchSessionMs = 60_000;

/** As `Driver.open`, for a source with `servers`. */
export async function openRedundant(config: OpcuaConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { name, agent, options, stateDir, sharedDir = stateDir } = config;
  const stack = await loadStack(runtime.log);
  const memory = await RedundancyMemory.open(stateDir);
  await using resources = new AsyncDisposableStack();
  const pki = resources.use(
    await openPki(stack, {
      agent,
      dir: sharedDir,
      configFile: config.configFile,
      remedy: remedyIn(config.forbiddenDir),
    }),
  );
  const identity = await identityOf(stack, options);
  let changed = () => {};
  const watches = [...new Set([options.url, ...options.servers])].map((url) =>
    resources.use(
      new ServerWatch(
        {
          stack,
          link: {
            name: `${name}-watch`,
            agent,
            // One that a cut leaves behind is gone soon.
            options: { ...options, url, session: { timeout: watchSessionMs } },
            pki,
            identity,
          },
          dir: join(memory.folder(url), "watch"),
          changed: () => changed(),
        },
        runtime,
      ),
    ),
  );
  const { clock } = runtime;
  const choose = () => chooseServer(watches, memory.inUse, memory.sinceMs(clock.now()));
  await enoughKnown(watches, memory.inUse, runtime, signal);
  const before = memory.inUse;
  const url = choose();
  await memory.use(url, clock.now());
  const found = watches.find((watch) => watch.url === url);
  runtime.log.info(
    { url, serviceLevel: found?.level, redundancy: found?.set.support, servers: watches.length },
    before === undefined || before === url ? "a server of the redundant set is used" : "failed over to another server",
  );
  if (before !== undefined && before !== url) runtime.metrics.counter(failOvers).add(1, { source: name });
  const source = resources.use(
    await openOpcua(
      { ...config, options: { ...options, url }, stateDir: memory.folder(url), sharedDir },
      runtime,
      signal,
    ),
  );
  const owned = resources.move();
  return new RedundantSource(source, watches, url, choose, runtime, owned, (act) => {
    changed = act;
  });
}

/** Resolves when it can be said which server to use: a server that does not even refuse must not hold the others up. */
async function enoughKnown(
  watches: readonly ServerWatch[],
  inUse: string | undefined,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const all = Promise.all(watches.map(({ known }) => known));
  const wellServed = Promise.race([
    ...watches
      .filter(({ url }) => url === inUse)
      .map(async (watch) => {
        await watch.known;
        // What is not well served is compared with all others.
        if (!isHealthy(watch.level)) await all;
      }),
    all,
  ]);
  const patience = (async () => {
    do await clock.sleep(patienceMs, AbortSignal.any([signal, over.signal]));
    while (!watches.some(({ level }) => isHealthy(level)));
  })();
  patience.catch(() => {});
  try {
    await orAbort(Promise.race([wellServed, patience]), signal);
  } finally {
    over.abort(new Error("enough is known"));
  }
}

class RedundantSource implements Source {
  readonly #source: OpcuaSource;
  readonly #watches: readonly ServerWatch[];
  readonly #url: string;
  readonly #choose: () => string;
  readonly #runtime: Runtime;
  readonly #owned: AsyncDisposableStack;
  readonly #onChange: (act: () => void) => void;

  constructor(
    source: OpcuaSource,
    watches: readonly ServerWatch[],
    url: string,
    choose: () => string,
    runtime: Runtime,
    owned: AsyncDisposableStack,
    onChange: (act: () => void) => void,
  ) {
    this.#source = source;
    this.#watches = watches;
    this.#url = url;
    this.#choose = choose;
    this.#runtime = runtime;
    this.#owned = owned;
    this.#onChange = onChange;
  }

  get holder() {
    return this.#source.holder;
  }

  get recovery() {
    return this.#source.recovery;
  }

  get addresses() {
    return this.#source.addresses;
  }

  async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
    const leave = new AbortController();
    const stop = AbortSignal.any([signal, leave.signal]);
    const deciding = this.#decide(leave, AbortSignal.any([signal, leave.signal]));
    try {
      // Where it is left by choice, what has arrived is still handed out.
      yield* this.#source.deliveries(stop);
      if (!signal.aborted) throw leave.signal.reason;
    } finally {
      leave.abort(new Error("the source ends"));
      await deciding;
    }
  }

  details(): Readonly<Record<string, string | number>> {
    const own = this.#watches.find(({ url }) => url === this.#url);
    const uris = this.#watches.map(({ set }) => set.uri);
    const urls = this.#watches.map(({ url }) => url);
    const advice = own && partnerAdvice(own.set, uris, urls);
    const levels = this.#watches.map(({ url, level, failure }) => `${url} ${level ?? failure ?? "unreachable"}`);
    return {
      ...this.#source.details(),
      server: this.#url,
      "service levels": levels.join(", "),
      ...(own?.set.support !== undefined && { redundancy: own.set.support }),
      ...(advice !== undefined && { advice }),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }

  /** Aborts `leave` when another server is to be used. */
  async #decide(leave: AbortController, signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime;
    let wake = Promise.withResolvers<void>();
    this.#onChange(() => wake.resolve());
    while (!signal.aborted) {
      const level = (url: string) => this.#watches.find((watch) => watch.url === url)?.level;
      const next = this.#choose();
      // Whether it can still be reached its own connection knows best, which may bridge a short interruption.
      if (next !== this.#url && level(this.#url) !== undefined) {
        const message = `${this.#url} is at service level ${level(this.#url)}, ${next} at ${level(next)}: going on there`;
        leave.abort(new AgentError("SOURCE_UNREACHABLE", message));
        return;
      }
      const nap = new AbortController();
      const slept = clock.sleep(isHealthy(level(this.#url)) ? holdMs : 1_000, AbortSignal.any([signal, nap.signal]));
      await Promise.race([slept, wake.promise]).catch((error: unknown) => {
        if (!isAbort(error, signal) && !isAgentError(error)) throw error;
      });
      nap.abort(new Error("awake"));
      await slept.catch(() => {});
      wake = Promise.withResolvers();
    }
  }
}
