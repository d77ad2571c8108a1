// Opens a source: connects to the first broker that accepts, with the stored session state.
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { Logger, Runtime } from "../../../core/runtime.ts";
import type { Source } from "../../../core/source.ts";
import { clientIdOf } from "../config/connection-checks.ts";
import type { BrokerConnection } from "../connection/client.ts";
import { connectBroker } from "../connection/connect.ts";
import { type Attempt, shownUrl } from "../connection/failure.ts";
import { loadSessionState } from "../connection/session-state.ts";
import { takeoverWatchOf } from "../connection/takeover-watch.ts";
import { NamesFile, NameTables } from "../reading/name-tables.ts";
import { Reception } from "./reception.ts";
import { type MqttConfig, MqttSource } from "./source.ts";

/** Connects to the first broker that accepts, and subscribes. See `Driver.open`. */
export async function openMqttSource(config: MqttConfig, runtime: Runtime, signal: AbortSignal): Promise<Source> {
  const { url, servers, verify } = config.options;
  const log = runtime.log.child({ part: "source", source: config.name, driver: "mqtt" });
  if (verify === "none")
    log.warn({ url: shownUrl(url) }, "the broker's certificate is not checked; anybody can pass for it");
  const failures: AgentError[] = [];
  for (const each of [url, ...servers]) {
    try {
      return await openAt(each, config, runtime, log, signal);
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

async function openAt(
  url: string,
  config: MqttConfig,
  runtime: Runtime,
  log: Logger,
  signal: AbortSignal,
): Promise<Source> {
  const { name, tags, options } = config;
  const { maxPayload, requestRebirth, session } = options;
  const clientId = clientIdOf(options, { agent: config.agent, source: name });
  const state = await loadSessionState(config.stateDir, { url, clientId }, log);
  const namesFile = new NamesFile(config.stateDir, url, log);
  const names = new NameTables(tags, tags.some((tag) => tag.names) ? await namesFile.load() : {});
  const onNames = () => namesFile.save(names.known);
  const receiving = {
    source: name,
    tags,
    maxPayload,
    requestRebirth,
    names,
    onNames,
    receiveMaximum: session.receiveMaximum,
  };
  const attach = (link: BrokerConnection) => new Reception(receiving, runtime, link);
  const onEstablished = (attempt: Attempt) => takeoverWatchOf(config).established(attempt, runtime.clock);
  const connecting = { url, options, clientId, state, attach, onEstablished, log };
  const { connection, handler } = await connectBroker(connecting, signal);
  const { protocolVersion, sessionPresent } = connection;
  const broker = shownUrl(url);
  const about = { url: broker, clientId, protocolVersion };
  if (sessionPresent) log.info(about, "the broker resumed our session");
  else log.info(about, "the broker began a session");
  if (session.persistent && !sessionPresent && state.filters.length > 0)
    log.warn({ url: broker, clientId }, "the broker did not keep the session; what was published meanwhile is lost");
  if (session.persistent) await state.remember({ protocolVersion, hangUps: 0 });
  const remembered = { state, names, namesFile };
  const parts = { url: broker, config, clientId, runtime, log, connection, reception: handler, ...remembered };
  const source = new MqttSource(parts);
  try {
    await source.subscribed(signal);
    return source;
  } catch (error) {
    await source[Symbol.asyncDispose]();
    throw error;
  }
}
