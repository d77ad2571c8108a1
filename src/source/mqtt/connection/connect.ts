// Establishes a connection from options: negotiates the version, and reads certificates and passwords again.
import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { connect } from "node:tls";
import type { IClientOptions } from "mqtt";
import { AgentError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/runtime.ts";
import { fileProblem } from "../../../lib/files/paths.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { defined } from "../../../lib/values/defined.ts";
import type { MqttOptions } from "../config/options.ts";
import {
  type BrokerConnection,
  type Connected,
  connectOnce,
  type MessageHandler,
  type OnEstablished,
} from "./client.ts";
import { type ConnectFailure, shownUrl } from "./failure.ts";
import type { SessionState } from "./session-state.ts";
import { cutMessages } from "./web-socket-frames.ts";

type Version = 3 | 4 | 5;

interface Connecting<Handler> {
  readonly url: string;
  readonly options: MqttOptions;
  readonly clientId: string;
  /** State of earlier connections to this broker. Omitted: none. */
  readonly state?: Pick<SessionState, "protocolVersion" | "hungUp">;
  /** Returns a message handler. Called for every attempt. */
  readonly attach: (link: BrokerConnection) => Handler;
  /** Explains the loss of the connection. Omitted: from that connection alone. */
  readonly onEstablished?: OnEstablished;
  readonly log: Logger;
}

/** Connects to the broker at `url` with the newest version that both support. Rejects as `Driver.open` does. */
export async function connectBroker<Handler extends MessageHandler>(
  connecting: Connecting<Handler>,
  signal: AbortSignal,
): Promise<Connected<Handler>> {
  const { url, options, clientId, state, attach, onEstablished, log } = connecting;
  const { username } = options;
  const versions: readonly Version[] = options.protocolVersion === "auto" ? [5, 4, 3] : [options.protocolVersion];
  // Read for each connection, so that files can be changed without a restart.
  const credentials = await readCredentials(options);
  let first: ConnectFailure | undefined;
  for (const protocolVersion of versions) {
    const attempt = { url: shownUrl(url), username, clientId, protocolVersion };
    const result = await connectOnce(
      attempt,
      { ...libraryOptions(url, options, clientId, protocolVersion), ...credentials, maxPayload: options.maxPayload },
      attach,
      signal,
      onEstablished,
    );
    if (!("error" in result)) return result;
    first ??= result;
    if (result.olderVersion === "no") throw result.error;
    // The broker spoke version 5 before, so a silent disconnect is probably a restart.
    if (result.olderVersion === "perhaps" && state?.protocolVersion === 5) {
      await state.hungUp();
      throw result.error;
    }
    log.debug({ err: result.error, protocolVersion }, "no answer in this version of the protocol");
  }
  if (first && (await needsTls(url, signal)))
    throw new AgentError("SOURCE_PROTOCOL", `${shownUrl(url)}: this port speaks TLS, the URL does not`, {
      cause: first.error,
      hint: `write ${shownUrl(url).replace(/^(mqtt|ws)(?=:)/i, "$1s")}, with caFile where the issuer of the broker's certificate is your own`,
    });
  throw first?.error ?? new AgentError("SOURCE_PROTOCOL", `${shownUrl(url)}: no version of the protocol to try`);
}

/** Removes the brackets of an IPv6 address, which only URLs have. */
function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/** Smallest maximum packet size, in bytes. It lets the broker send payloads above `maxPayload`, which are counted. */
const leastMaximumPacket = 16 * 2 ** 20;

/** Converts `options` to those of the `mqtt` library. */
function libraryOptions(url: string, options: MqttOptions, clientId: string, protocolVersion: Version): IClientOptions {
  const { session, username, password, keepalive, connectTimeout, maxPayload } = options;
  const { protocol, hostname, port, pathname, search } = new URL(url);
  const host = withoutBrackets(hostname);
  const transport = (["mqtt", "mqtts", "ws", "wss"] as const).find((each) => protocol === `${each}:`);
  return {
    ...(transport && { protocol: transport }),
    host,
    hostname: host,
    ...(port !== "" && { port: Number(port) }),
    path: `${pathname === "" ? "/" : pathname}${search}`,
    protocolVersion,
    protocolId: protocolVersion === 3 ? "MQIsdp" : "MQTT",
    clientId,
    clean: !session.persistent,
    keepalive: Math.round(keepalive / 1_000),
    connectTimeout,
    ...defined({ username, password: password?.reveal() }),
    ...tlsOptions(options),
    ...(protocolVersion === 5 && {
      properties: {
        // Omitted or 0, the session would end with the connection, regardless of `clean`.
        sessionExpiryInterval: session.persistent ? Math.min(0xffff_ffff, Math.ceil(session.expiry / 1_000)) : 0,
        receiveMaximum: session.receiveMaximum,
        // The broker does not send larger packets. Refusing them here would need memory for the whole packet.
        maximumPacketSize: Math.max(leastMaximumPacket, 2 * maxPayload),
      },
    }),
  };
}

/** TLS verification options. WebSockets read some of them from `wsOptions`. */
function tlsOptions({ serverName, verify, alpn, keyPassphrase }: MqttOptions): IClientOptions {
  const checks: RequestOptions = {
    rejectUnauthorized: verify !== "none",
    ...(verify === "ca" && { checkServerIdentity: () => undefined }),
    ...defined({ servername: serverName, passphrase: keyPassphrase?.reveal() }),
  };
  return {
    ...checks,
    ...(alpn.length > 0 && { ALPNProtocols: [...alpn] }),
    wsOptions: { ...checks, ...cutMessages },
  } as IClientOptions; // the two types name the same TLS fields
}

async function readCredentials(options: MqttOptions): Promise<IClientOptions> {
  const { caFile, certFile, keyFile, passwordFile } = options;
  const [secret, ca, cert, key] = await Promise.all([
    read("passwordFile", passwordFile),
    read("caFile", caFile),
    read("certFile", certFile),
    read("keyFile", keyFile),
  ]);
  // Editors add a newline at the end of a file.
  const password = secret?.toString("utf8").replace(/\r?\n$/, "");
  return defined({ password, ca, cert, key });
}

async function read(option: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path);
  } catch (error) {
    throw new AgentError("SOURCE_REFUSED", `${option} ${path} cannot be read: ${fileProblem(error)}`, {
      cause: error,
      hint: `correct ${option}, or let the user of the agent read the file`,
    });
  }
}

/** Time-out in milliseconds. */
const answerWithin = 3_000;

/**
 * Whether the port of a URL without TLS speaks TLS. False also if it cannot be reached. Rejects with `signal.reason`
 * only.
 */
async function needsTls(url: string, signal: AbortSignal): Promise<boolean> {
  const { protocol, hostname, port } = new URL(url);
  const usual = { "mqtt:": 1_883, "ws:": 80 }[protocol];
  if (usual === undefined) return false;
  signal.throwIfAborted();
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const host = withoutBrackets(hostname);
  const servername = /^[\d.]+$|:/.test(host) ? undefined : host;
  const socket = connect({ host, port: Number(port || usual), rejectUnauthorized: false, ...defined({ servername }) });
  const timer = setTimeout(() => resolve(false), answerWithin);
  socket.on("secureConnect", () => resolve(true));
  // An alert also proves TLS, for example if the server requires a client certificate.
  socket.on("error", (error) => resolve("code" in error && /^ERR_SSL_.*ALERT/.test(String(error.code))));
  socket.on("close", () => resolve(false));
  try {
    return await orAbort(promise, signal);
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}
