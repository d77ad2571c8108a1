// A broker connection as a `Source`. Messages are acknowledged once they are on disk.

import type { DriverConfig } from "../../../core/driver.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Recovery } from "../../../core/gap.ts";
import type { Logger, Runtime } from "../../../core/runtime.ts";
import type { Delivery, Source, SourceCheck, UnknownAddress } from "../../../core/source.ts";
import { isAbort, orAbort } from "../../../lib/abort.ts";
import type { mqttOptions } from "../config/options.ts";
import type { mqttTag } from "../config/tag.ts";
import { tagFilter } from "../config/tag-address.ts";
import type { MqttConnection } from "../connection/client.ts";
import { describeReason } from "../connection/reason-code.ts";
import type { SessionState } from "../connection/session-state.ts";
import {
  applySubscriptions,
  readTopicsHint,
  refusals,
  refusedTopics,
  type Subscriptions,
} from "../connection/subscriptions.ts";
import type { NamesFile, NameTables } from "../reading/name-tables.ts";
import type { Reception } from "./reception.ts";
import { StaleTagWatch } from "./stale-tag-watch.ts";

export type MqttConfig = DriverConfig<typeof mqttOptions, typeof mqttTag>;

/** Milliseconds between attempts to subscribe refused filters. */
const retryRefusedMs = 300_000;
/** Milliseconds between checks for overdue Sparkplug messages. */
const overdueEveryMs = 500;
/** Milliseconds without reading before a warning is logged. */
const stallWarningMs = 5_000;

export interface Parts {
  readonly url: string;
  readonly config: MqttConfig;
  readonly clientId: string;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly connection: MqttConnection;
  readonly reception: Reception;
  readonly state: SessionState;
  readonly names: NameTables;
  readonly namesFile: NamesFile;
}

export class MqttSource implements Source {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  readonly #subscribing: Promise<void>;
  #subscriptions: Subscriptions = { granted: [], refused: new Map(), unprotected: [] };

  constructor(parts: Parts) {
    this.#parts = parts;
    const { connection, reception, state } = parts;
    void connection.lost.then((error) => reception.fail(error));
    this.#subscribing = this.#subscribe(connection.sessionPresent ? state.filters : []);
    void this.#inBackground(this.#subscribing.then(() => this.#retryRefused()));
    void this.#inBackground(this.#keepAlive());
    void this.#inBackground(this.#watchSilence());
    void this.#inBackground(this.#releaseOverdue());
  }

  get holder(): string | undefined {
    return this.#isProtected ? "the broker" : undefined;
  }

  get recovery(): Recovery | undefined {
    const kept = this.#parts.connection.sessionPresent && this.#isProtected;
    return kept ? { how: "kept", by: "the broker had kept the session" } : undefined;
  }

  /** Whether the broker stores unacknowledged messages. */
  get #isProtected(): boolean {
    return this.#parts.config.options.qos > 0 && this.#subscriptions.unprotected.length === 0;
  }

  /** Resolves when subscriptions are answered, blocked by unread messages or timed out. Rejects if all are refused. */
  async subscribed(signal: AbortSignal): Promise<void> {
    const { url, config, runtime, reception, log } = this.#parts;
    const { connectTimeout } = config.options;
    const waiting = new AbortController();
    const tooLong = runtime.clock
      .sleep(connectTimeout, AbortSignal.any([waiting.signal, this.#closing.signal]))
      .then(() => log.warn({ ms: connectTimeout }, "the broker has not answered the subscriptions yet"));
    tooLong.catch(() => {});
    try {
      await orAbort(Promise.race([this.#subscribing, reception.firstStall, tooLong]), signal);
    } finally {
      waiting.abort();
    }
    const { granted, refused } = this.#subscriptions;
    const [first] = refused;
    if (granted.length > 0 || first === undefined) return;
    const [filter, code] = first;
    throw new AgentError(
      "SOURCE_REFUSED",
      `${url} refused all subscriptions, such as ${filter}: ${describeReason(code)}`,
      { hint: readTopicsHint, cause: { refused: refusedTopics(this.#parts.config.tags, this.#subscriptions) } },
    );
  }

  /** Discards messages during the check, since the broker's answers may be queued behind them. */
  async check(signal: AbortSignal): Promise<SourceCheck> {
    const answered = new AbortController();
    const taking = this.#discard(AbortSignal.any([signal, answered.signal]));
    try {
      await Promise.race([this.#subscribing, taking]);
      signal.throwIfAborted();
    } finally {
      answered.abort(new Error("the broker has answered"));
      await taking.catch(() => {});
    }
    return { refused: refusedTopics(this.#parts.config.tags, this.#subscriptions) };
  }

  async #discard(signal: AbortSignal): Promise<void> {
    for (;;) await this.#parts.reception.take(signal);
  }

  async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery, void, undefined> {
    try {
      for (;;) yield await this.#parts.reception.take(signal);
    } catch (error) {
      if (!isAbort(error, signal)) throw error;
      // Delivers what has arrived, so that it is stored.
      yield* this.#parts.reception.rest();
    }
  }

  details(): Readonly<Record<string, string | number>> {
    const { url, config, connection, clientId, reception } = this.#parts;
    const { granted, refused, unprotected } = this.#subscriptions;
    const { protocolVersion, sessionPresent, keepaliveMs, limits } = connection;
    const numbers = Object.entries(limits).filter((limit): limit is [string, number] => typeof limit[1] === "number");
    return {
      broker: url,
      protocol: protocolNames[protocolVersion],
      clientId,
      session: sessionPresent ? "resumed" : "new",
      subscriptions: granted.length,
      refusedSubscriptions: refused.size,
      ...(unprotected.length > 0 && { unprotectedSubscriptions: unprotected.length }),
      keepaliveSeconds: keepaliveMs / 1_000,
      ...(config.options.verify === "none" && { certificate: "not checked" }),
      ...reception.details,
      ...Object.fromEntries(numbers.map(([name, value]) => [`broker.${name}`, value])),
    };
  }

  unknown(): readonly UnknownAddress[] {
    return this.#parts.reception.unknown;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the connection is closed"));
    this.#parts.reception.close();
    await this.#parts.connection[Symbol.asyncDispose]();
    await this.#parts.namesFile.written();
  }

  async #subscribe(inSession: readonly string[]): Promise<void> {
    const { config, connection, reception, runtime, state, log } = this.#parts;
    const { qos } = config.options;
    const retained = config.tags.some((tag) => tag.retained !== "ignore");
    const wanted = config.tags.map(tagFilter);
    const { filters: repeated } = this.#parts.names;
    const options = { qos, retained, inSession, repeated };
    const subscriptions = await applySubscriptions(connection, wanted, options, state, log);
    this.#subscriptions = subscriptions;
    if (subscriptions.refused.size > 0) reception.add(refusals(config.tags, subscriptions, runtime));
  }

  /** Permissions at the broker may change during the connection. */
  async #retryRefused(): Promise<void> {
    while (this.#subscriptions.refused.size > 0) {
      await this.#parts.runtime.clock.sleep(retryRefusedMs, this.#closing.signal);
      await this.#subscribe(this.#subscriptions.granted);
    }
  }

  async #watchSilence(): Promise<void> {
    const { config, reception, runtime, log } = this.#parts;
    const { clock } = runtime;
    const watch = new StaleTagWatch(config.tags, clock.monotonic());
    const { intervalMs } = watch;
    if (intervalMs === undefined) return;
    reception.onTaken((readings) => watch.heard(readings, clock.monotonic()));
    for (;;) {
      await clock.sleep(intervalMs, this.#closing.signal);
      for (const silent of watch.look(clock.monotonic())) {
        log.warn({ topic: silent.topic, ms: silent.expectEvery }, "no message for longer than expected");
        if (silent.named) reception.add([watch.reading(silent, clock.now())]);
      }
    }
  }

  /** Needed if a message waits for one that never comes and no other message arrives. */
  async #releaseOverdue(): Promise<void> {
    const { config, reception, runtime } = this.#parts;
    if (!config.tags.some(({ format }) => format === "sparkplugB")) return;
    for (;;) {
      await runtime.clock.sleep(overdueEveryMs, this.#closing.signal);
      reception.releaseOverdue();
    }
  }

  /**
   * While reading is paused, the library receives no answer to its pings and would disconnect. On a slow link, the
   * answer may be queued behind more data than arrives in half the keep-alive time. The broker also expects packets.
   */
  async #keepAlive(): Promise<void> {
    const { connection, reception, runtime, log } = this.#parts;
    let told = false;
    for (;;) {
      await runtime.clock.sleep(connection.keepaliveMs / 4, this.#closing.signal);
      const { stalledMs } = reception;
      if (connection.heard() || stalledMs !== undefined) connection.stayAlive();
      if (stalledMs === undefined) told = false;
      else {
        if (!told && stalledMs >= stallWarningMs)
          log.warn({ ms: Math.round(stalledMs) }, "messages are left at the broker because nothing takes them here");
        told ||= stalledMs >= stallWarningMs;
      }
    }
  }

  /** A failure of background work ends the connection, unless it is closing. */
  async #inBackground(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      if (!this.#closing.signal.aborted) this.#parts.reception.fail(error);
    }
  }
}

const protocolNames = { 3: "MQTT 3.1", 4: "MQTT 3.1.1", 5: "MQTT 5" } as const;
