// Checks of connection options: whether two sources claim one session, and how the connection is protected.
import type { SecurityFinding } from "../../../core/commissioning.ts";
import type { Claim, ConfigWarning, SourceOwner } from "../../../core/driver.ts";
import { leavesMachine } from "../../../lib/network/loopback.ts";
import type { MqttOptions } from "./options.ts";

const usualPorts: Readonly<Record<string, string>> = { "mqtt:": "1883", "mqtts:": "8883", "ws:": "80", "wss:": "443" };

export function clientIdOf({ clientId }: Pick<MqttOptions, "clientId">, { agent, source }: SourceOwner): string {
  return clientId ?? `${agent}-${source}`;
}

/** Sessions of a source. A broker disconnects a client when another one uses its client identifier. */
export function claimedSessions(options: MqttOptions, owner: SourceOwner): readonly Claim[] {
  const clientId = clientIdOf(options, owner);
  const brokers = [options.url, ...options.servers].map(brokerOf);
  const ends = "the broker ends the connection of one whenever the other connects";
  const another =
    "give one of them another clientId (default: <agent.name>-<source name>, so two agents need two names)";
  const claims = (places: readonly string[], hint: string, uncertain: boolean) =>
    [...new Set(places)].map((place) => ({
      key: JSON.stringify([place, clientId]),
      field: "clientId",
      message: `is client identifier ${clientId} at ${place}`,
      hint,
      uncertain,
    }));
  const ports = brokers.map(({ host, port }) => `${host}:${port}`);
  const hosts = brokers.map(({ host }) => host);
  return [
    ...claims(ports, `${ends}; ${another}`, false),
    ...claims(hosts, `if both ports belong to one broker, ${ends}: ${another}`, true),
  ];
}

/** Host and port in a normal form. */
function brokerOf(url: string): { readonly host: string; readonly port: string } {
  const { protocol, hostname, port } = new URL(url.toLowerCase());
  const host = /^(localhost|\[::1\])$/.test(hostname) ? "127.0.0.1" : hostname;
  return { host, port: port === "" ? (usualPorts[protocol] ?? "") : port };
}

/** Warnings about options that let others read or falsify the traffic. */
export function connectionWarnings(options: MqttOptions): readonly ConfigWarning[] {
  const { url, servers, password, passwordFile, verify } = options;
  const urls = [url, ...servers];
  const warnings: ConfigWarning[] = [];
  if ((password ?? passwordFile) !== undefined && urls.some(isClear))
    warnings.push({
      field: "url",
      message: "is not encrypted: the password and all messages can be read by anyone on the network",
      hint: "mqtts:// or wss:// where the broker offers it, with caFile where its authority is your own",
    });
  // Without verification, any machine on the path can impersonate the broker.
  if (verify === "none" && urls.some(isTls))
    warnings.push({
      field: "verify",
      message:
        "is none: the certificate of the broker is not verified, so another machine can impersonate it and read the password and all messages",
      hint: "verify: full, with caFile for the certificate of the issuer and serverName where the certificate has another name",
    });
  return warnings;
}

function isTls(url: string): boolean {
  return /^(mqtts|wss):/i.test(url);
}

function isClear(url: string): boolean {
  return /^(mqtt|ws):/i.test(url) && leavesMachine(url);
}

/** As `Driver.findings`. */
export function connectionFindings({ url, verify }: Pick<MqttOptions, "url" | "verify">): readonly SecurityFinding[] {
  const remedy = "mqtts:// or wss:// where the broker offers it";
  if (!isTls(url))
    return leavesMachine(url)
      ? [{ state: "weak", message: "not encrypted", remedy }]
      : [{ state: "good", message: "not encrypted, and it does not leave this machine" }];
  const unverified = "TLS, but the certificate of the broker is not verified";
  if (verify === "none") return [{ state: "weak", message: unverified, remedy: "verify: full, with caFile" }];
  const checked = verify === "ca" ? "the issuer is verified, the name is not" : "issuer and name are verified";
  return [{ state: "good", message: `TLS; ${checked}` }];
}
