// A non-transparent redundant set: watches all servers and uses the best one (OPC 10000-4, 6.6.2.4).
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Source } from "../../../core/source.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { openPki, pkiOf } from "../certificates/pki.ts";
import type { OpcuaConfig } from "../config/options.ts";
import { openOpcua } from "../connection/open.ts";
import { identityOf } from "../session/login.ts";
import { partnerAdvice } from "../session/server-facts.ts";
import { loadStack } from "../stack/stack.ts";
import { chooseServer, isHealthy, openRedundancyMemory, type ServerWatch, watchServer } from "./service-level.ts";

const failOvers = {
  name: "source_opcua_fail_overs_total",
  help: "Changes to another server of a redundant set.",
  labels: ["source"],
} as const;

/** How long to wait for all answers if one server is healthy. */
const patienceMs = 3_000;
const compareEveryMs = 200;
const watchSessionMs = 60_000;

/** Contract: see `Driver.open`. For a source with `servers`. */
export async function openRedundant(config: OpcuaConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { name, agent, options, stateDir, sharedDir = stateDir } = config;
  const { clock, log, metrics } = runtime;
  const stack = await loadStack(log);
  const memory = await openRedundancyMemory(stateDir);
  await using resources = new AsyncDisposableStack();
  const pki = resources.use(await openPki(stack, pkiOf(config)));
  const identity = await identityOf(stack, options);
  const watches = [...new Set([options.url, ...options.servers])].map((url) => {
    // After a broken connection, the server soon removes the session.
    const watched = { ...options, url, session: { timeout: watchSessionMs } };
    const link = { name: `${name}-watch`, agent, options: watched, pki, identity };
    return resources.use(watchServer(stack, link, runtime));
  });
  const watchOf = (url: string | undefined) => watches.find((watch) => watch.url === url);
  const choose = () => chooseServer(watches, memory.inUse, memory.sinceMs(clock.now()));
  const before = memory.inUse;
  await enoughKnown(watches, watchOf(before), runtime, signal);
  const url = choose();
  await memory.use(url, clock.now());
  const own = watchOf(url);
  log.info(
    { url, serviceLevel: own?.level, redundancy: own?.set.support, servers: watches.length },
    before === undefined || before === url ? "a server of the redundant set is used" : "failed over to another server",
  );
  if (before !== undefined && before !== url) metrics.counter(failOvers).add(1, { source: name });
  const used = { ...config, options: { ...options, url }, stateDir: memory.folder(url), sharedDir };
  const source = resources.use(await openOpcua(used, runtime, signal));
  const owned = resources.move();

  /** Aborts `leave` when another server should be used. */
  const decide = async (leave: AbortController, ending: AbortSignal) => {
    for (;;) {
      const next = choose();
      // If the server in use is unreachable, its connection decides, as it may bridge a short interruption.
      if (next !== url && own?.level !== undefined) {
        const message = `${url} is at service level ${own.level}, ${next} at ${watchOf(next)?.level}: going on there`;
        leave.abort(new AgentError("SOURCE_UNREACHABLE", message));
        return;
      }
      await clock.sleep(compareEveryMs, ending);
    }
  };
  return {
    get retainedBy() {
      return source.retainedBy;
    },
    recovery: source.recovery,
    addresses: source.addresses,
    check: (stop) => source.check(stop),
    async *deliveries(stop) {
      const leave = new AbortController();
      const ending = AbortSignal.any([stop, leave.signal]);
      const deciding = decide(leave, ending).catch((error: unknown) => {
        if (!isAbort(error, ending)) throw error;
      });
      try {
        // On a planned change of server, readings that have arrived are still delivered.
        yield* source.deliveries(ending);
        if (!stop.aborted) throw leave.signal.reason;
      } finally {
        leave.abort(new Error("the source ends"));
        await deciding;
      }
    },
    details() {
      const [uris, urls] = [watches.map(({ set }) => set.uri), watches.map((watch) => watch.url)];
      const advice = own && partnerAdvice(own.set, uris, urls);
      const levels = watches.map((watch) => `${watch.url} ${watch.level ?? watch.failure ?? "unreachable"}`);
      return {
        ...source.details(),
        server: url,
        "service levels": levels.join(", "),
        ...(own?.set.support !== undefined && { redundancy: own.set.support }),
        ...(advice !== undefined && { advice }),
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Resolves when a server can be chosen. A server that never answers must not delay the others. */
async function enoughKnown(
  watches: readonly ServerWatch[],
  inUse: ServerWatch | undefined,
  { clock }: Runtime,
  signal: AbortSignal,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += compareEveryMs) {
    if (watches.every(({ level, failure }) => level !== undefined || failure !== undefined)) return;
    // A server in use that is not healthy is compared with all others.
    if (isHealthy(inUse?.level)) return;
    if (waitedMs >= patienceMs && watches.some(({ level }) => isHealthy(level))) return;
    await clock.sleep(compareEveryMs, signal);
  }
}
