// The sessions at brokers that a source takes for itself: a broker has one session for each client identifier, and ends the
// connection of one client when another connects with its identifier. Pure.
import type { Claim, SourceOwner } from "../../../core/source.ts";

interface Options {
  readonly url: string;
  readonly servers: readonly string[];
  readonly clientId?: string | undefined;
}

const usualPorts: Readonly<Record<string, string>> = { "mqtt:": "1883", "mqtts:": "8883", "ws:": "80", "wss:": "443" };

/** The client identifier of a source. */
export function clientIdOf({ clientId }: Pick<Options, "clientId">, { agent, source }: SourceOwner): string {
  return clientId ?? `${agent}-${source}`;
}

export function claimedSessions(options: Options, owner: SourceOwner): readonly Claim[] {
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
  return [
    ...claims(
      brokers.map(({ host, port }) => `${host}:${port}`),
      `${ends}; ${another}`,
      false,
    ),
    ...claims(
      brokers.map(({ host }) => host),
      `if both ports belong to one broker, ${ends}: ${another}`,
      true,
    ),
  ];
}

/** The same for all ways to write it. */
function brokerOf(url: string): { readonly host: string; readonly port: string } {
  const { protocol, hostname, port } = new URL(url.toLowerCase());
  const host = /^(localhost|\[::1\])$/.test(hostname) ? "127.0.0.1" : hostname;
  return { host, port: port === "" ? (usualPorts[protocol] ?? "") : port };
}
