// A broker connection as a `Source`: the way to it, its subscriptions, and what runs next to it. Messages are
// acknowledged once they are on disk.
import type { DriverConfig } from "../../../core/driver.ts";
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Recovery, Source } from "../../../core/source.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import { clientIdOf, type mqttOptions } from "../config/options.ts";
import type { mqttTag } from "../config/tag.ts";
import { tagFilter } from "../config/tag-address.ts";
import { connectBroker } from "../connection/connect.ts";
import { shownUrl, takeoverWatchOf } from "../connection/failure.ts";
import { meaningOf } from "../connection/reason-code.ts";
import { loadSessionState } from "../connection/session-state.ts";
import {
  applySubscriptions,
  readTopicsHint,
  refusals,
  refusedTopics,
  type Subscriptions,
} from "../connection/subscriptions.ts";
import { NameTables, namesFile } from "../reading/name-tables.ts";
import { openMessageReceiver } from "./message-receiver.ts";

type MqttConfig = DriverConfig<typeof mqttOptions, typeof mqttTag>;

/** Milliseconds between attempts to subscribe refused filters. */
const retryRefusedMs = 300_000;
/** Milliseconds between checks for overdue Sparkplug messages. */
const overdueEveryMs = 500;
/** Milliseconds without reading before a warning is logged. */
const stallWarningMs = 5_000;

/** Connects to the first broker that accepts, with the stored session state, and subscribes. See `Driver.open`. */
export async function openMqttSource(config: MqttConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { url, servers, verify } = config.options;
  const log = runtime.log.child({ part: "source", source: config.name, driver: "mqtt" });
  if (verify === "none")
    log.warn({ url: shownUrl(url) }, "the broker's certificate is not verified; any server can impersonate it");
  const failures: AgentError[] = [];
  for (const each of [url, ...servers]) {
    try {
      return await openAt(each, config, { ...runtime, log }, signal);
    } catch (error) {
      if (!isAgentError(error)) throw error;
      if (servers.length > 0) log.warn({ url: shownUrl(each), code: error.code, err: error }, "abandoned this broker");
      failures.push(error);
    }
  }
  takeoverWatchOf(config).openFailed(failures);
  // A takeover needs a longer pause than other failures.
  const first = failures.find(({ code }) => code === "SOURCE_TAKEN_OVER") ?? failures[0];
  if (failures.length === 1 && first) throw first;
  const texts = failures.map(({ message }) => message).join("; ");
  const of = first && { cause: first, hint: first.hint };
  throw new AgentError(first?.code ?? "SOURCE_UNREACHABLE", texts, of);
}

/** `runtime.log` is that of the source. */
async function openAt(address: string, config: MqttConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { name, tags, options } = config;
  const { session, qos } = options;
  const { clock, log } = runtime;
  const url = shownUrl(address);
  const clientId = clientIdOf(options, { agent: config.identity ?? config.agent, source: name });
  const state = await loadSessionState(config.stateDir, { url: address, clientId }, log);
  const nameStore = namesFile(config.stateDir, address, log);
  const known = tags.some((tag) => tag.names) ? await nameStore.load() : undefined;
  const receiving = {
    source: name,
    tags,
    maxPayload: options.maxPayload,
    requestRebirth: options.requestRebirth,
    receiveMaximum: session.receiveMaximum,
    names: new NameTables(tags, known, (all) => void nameStore.save(all)),
    inSession: state.answered,
  };
  const { connection, handler: receiver } = await connectBroker(
    {
      url: address,
      options,
      clientId,
      state,
      attach: (link) => openMessageReceiver(receiving, runtime, link),
      onEstablished: (attempt) => takeoverWatchOf(config).established(attempt, clock),
      log,
    },
    signal,
  );
  const { protocolVersion, sessionPresent, keepaliveMs } = connection;
  const about = { url, clientId, protocolVersion };
  log.info(about, sessionPresent ? "the broker resumed our session" : "the broker began a session");
  if (session.persistent && !sessionPresent && state.filters.length > 0)
    log.warn({ url, clientId }, "the broker did not keep the session; what was published meanwhile is lost");
  if (session.persistent) await state.remember({ protocolVersion, hangUps: 0 });
  const expiryAdvice = session.persistent ? shortExpiry(connection.limits, session.expiry) : undefined;
  if (expiryAdvice !== undefined) log.warn(about, expiryAdvice);

  const closing = new AbortController();
  let wasStalled = false;
  let subscriptions: Subscriptions = { granted: [], refused: new Map(), unprotected: [] };
  void connection.lost.then((error) => receiver.fail(error));
  const subscribing = subscribe(sessionPresent ? state.filters : []);
  // A failure of background work ends the connection, unless it is closing.
  for (const work of [
    subscribing.then(retryRefused),
    every(keepaliveMs / 4, keepAlive),
    watchSilence(),
    releaseOverdue(),
  ])
    work.catch((error: unknown) => {
      if (!closing.signal.aborted) receiver.fail(error);
    });

  async function subscribe(inSession: readonly string[]): Promise<void> {
    const retained = tags.filter((tag) => tag.retained !== "ignore").map(tagFilter);
    const how = { qos, retained, inSession, repeated: receiving.names.filters, onGranted: receiver.subscribed };
    subscriptions = await applySubscriptions(connection, tags.map(tagFilter), how, state, log);
    if (subscriptions.refused.size > 0) receiver.add(refusals(tags, subscriptions, runtime));
  }

  /** Calls `work` every `ms` milliseconds until the connection is closed. */
  async function every(ms: number, work: () => void): Promise<never> {
    for (;;) {
      await clock.sleep(ms, closing.signal);
      work();
    }
  }

  /** Permissions at the broker may change during the connection. */
  async function retryRefused(): Promise<void> {
    while (subscriptions.refused.size > 0) {
      await clock.sleep(retryRefusedMs, closing.signal);
      await subscribe(subscriptions.granted);
    }
  }

  async function watchSilence(): Promise<void> {
    const { stale } = receiver;
    if (!stale) return;
    await every(stale.intervalMs, () => {
      for (const { topic, expectEvery, readings } of stale.check(clock.monotonic(), clock.now())) {
        log.warn({ topic, ms: expectEvery }, "no message for longer than expected");
        receiver.add(readings);
      }
    });
  }

  /** Needed if a message waits for one that never comes and no other message arrives. */
  async function releaseOverdue(): Promise<void> {
    if (tags.some(({ format }) => format === "sparkplugB"))
      await every(overdueEveryMs, () => receiver.releaseOverdue());
  }

  /**
   * While reading is paused, the library receives no answer to its pings and would disconnect. On a slow link, the
   * answer may be queued behind more data than arrives in half the keep-alive time. The broker also expects packets.
   */
  function keepAlive(): void {
    const { stalledMs } = receiver;
    if (connection.received() || stalledMs !== undefined) connection.stayAlive();
    const isStalled = stalledMs !== undefined && stalledMs >= stallWarningMs;
    if (isStalled && !wasStalled)
      log.warn({ ms: Math.round(stalledMs) }, "messages are left at the broker because nothing takes them here");
    wasStalled = isStalled;
  }

  /** Resolves when subscriptions are answered, blocked by unread messages or timed out. Rejects if all are refused. */
  async function subscribed(): Promise<void> {
    const { connectTimeout } = options;
    const waiting = new AbortController();
    const tooLong = clock
      .sleep(connectTimeout, AbortSignal.any([waiting.signal, closing.signal]))
      .then(() => log.warn({ ms: connectTimeout }, "the broker has not answered the subscriptions yet"));
    tooLong.catch(() => {});
    try {
      await orAbort(Promise.race([subscribing, receiver.firstStall, tooLong]), signal);
    } finally {
      waiting.abort();
    }
    const [first] = subscriptions.refused;
    if (subscriptions.granted.length > 0 || first === undefined) return;
    const [filter, code] = first;
    throw new AgentError(
      "SOURCE_REFUSED",
      `${url} refused all subscriptions, such as ${filter}: ${meaningOf(code).text}`,
      { hint: readTopicsHint, cause: { refused: refusedTopics(tags, subscriptions) } },
    );
  }

  /** Whether the broker stores unacknowledged messages. */
  const isProtected = () => qos > 0 && subscriptions.unprotected.length === 0;

  const source: Source = {
    get retainedBy() {
      return isProtected() ? "the broker" : undefined;
    },
    get recovery(): Recovery | undefined {
      return sessionPresent && isProtected() ? { how: "kept", by: "the broker had kept the session" } : undefined;
    },
    /** Discards messages during the check, since the broker's answers may be queued behind them. */
    async check(checkSignal) {
      const answered = new AbortController();
      const until = AbortSignal.any([checkSignal, answered.signal]);
      const discarding = (async () => {
        for await (const _discarded of receiver.deliveries(until));
      })();
      try {
        await Promise.race([subscribing, discarding]);
        checkSignal.throwIfAborted();
      } finally {
        answered.abort(new Error("the broker has answered"));
        await discarding.catch(() => {});
      }
      return { refused: refusedTopics(tags, subscriptions) };
    },
    deliveries: (until) => receiver.deliveries(until),
    details() {
      const { granted, refused, unprotected } = subscriptions;
      const numbers = Object.entries(connection.limits).filter(([, limit]) => typeof limit === "number");
      return {
        broker: url,
        protocol: protocolNames[protocolVersion],
        clientId,
        session: sessionPresent ? "resumed" : "new",
        subscriptions: granted.length,
        refusedSubscriptions: refused.size,
        ...(unprotected.length > 0 && { unprotectedSubscriptions: unprotected.length }),
        keepaliveSeconds: keepaliveMs / 1_000,
        ...(expiryAdvice !== undefined && { advice: expiryAdvice }),
        ...(options.verify === "none" && { certificate: "not checked" }),
        ...receiver.details,
        ...Object.fromEntries(numbers.map(([limit, value]) => [`broker.${limit}`, Number(value)])),
      };
    },
    unknown: receiver.unknown,
    async [Symbol.asyncDispose]() {
      closing.abort(new Error("the connection is closed"));
      receiver.close();
      await connection[Symbol.asyncDispose]();
      await nameStore.saved();
    },
  };
  try {
    await subscribed();
    return source;
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}

/** What follows if the broker keeps the session for less than `expiry` milliseconds (MQTT 5). Undefined: it does not. */
function shortExpiry({ sessionExpiryInterval: seconds }: Readonly<Record<string, unknown>>, expiry: number) {
  if (typeof seconds !== "number" || seconds * 1_000 >= expiry) return undefined;
  const kept = seconds === 0 ? "does not keep the session" : `keeps the session for ${formatDuration(seconds * 1_000)}`;
  return `the broker ${kept}, session.expiry is ${formatDuration(expiry)}: messages of a longer interruption are lost`;
}

const protocolNames = { 3: "MQTT 3.1", 4: "MQTT 3.1.1", 5: "MQTT 5" } as const;
