// The device that is browsed: a typed address, or a source of a configuration with its access options.
import { resolve } from "node:path";
import type { Config } from "../../config/format/config.ts";
import { joinNames } from "../../config/nodes/suggest.ts";
import { sourceAddress } from "../../config/source-address.ts";
import type { BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";
import { holdsUser, shownValue, withoutSecrets } from "../../lib/text/without-secrets.ts";
import { drivers } from "../../source/registry.ts";
import { addressExamples, driverOfAddress } from "./protocols.ts";

export interface FoundTarget {
  readonly driver: Driver;
  readonly target: BrowseTarget;
}

/** `login`: where name and password belong. Throws `CONFIG_INVALID` if no driver supports the address. */
export function addressTarget(url: string, login: string): FoundTarget {
  const driver = driverOf(url);
  if (holdsUser(url))
    throw new AgentError(
      "CONFIG_INVALID",
      `${withoutSecrets(url)}: name and password stand in ${login}, not in the address`,
    );
  return { driver, target: { url } };
}

/**
 * The address, login, security and certificates of a configured source. `file`: the configuration as named by the
 * user, for messages. `url` replaces the address of the source. Throws `CONFIG_INVALID` if there is no such source.
 */
export function sourceTarget(
  { agent, sources }: Config,
  { file, source, url }: { readonly file: string; readonly source: string; readonly url?: string | undefined },
): FoundTarget {
  const found = sources.find(({ name }) => name === source);
  if (!found) {
    const names = sources.map(({ name }) => name).join(", ");
    throw new AgentError("CONFIG_INVALID", `${file} has no source ${source}; it has ${names}`);
  }
  const { driver } = found;
  const options: Readonly<Record<string, unknown>> = { ...found.options };
  const address = url ?? sourceAddress(options);
  if (address === undefined) throw new AgentError("CONFIG_INVALID", `source ${source} has no address`);
  const { username, password, security, userCertificate } = options;
  const target: BrowseTarget = {
    url: address,
    ...(typeof username === "string" && { username }),
    ...(password instanceof Secret && { password: password.reveal() }),
    ...(security !== undefined && { security: textsIn(security) }),
    ...(userCertificate !== undefined && { userCertificate: textsIn(userCertificate) }),
    sharedDir: resolve(agent.dataDir),
    agent: agent.name,
    configFile: file,
    options,
  };
  return { driver, target };
}

/** The text members of an option, secrets included. */
function textsIn(option: unknown): Record<string, string> {
  const members = typeof option === "object" && option !== null ? Object.entries(option) : [];
  return Object.fromEntries(
    members.flatMap(([name, value]: [string, unknown]) => {
      if (value instanceof Secret) return [[name, value.reveal()]];
      return typeof value === "string" ? [[name, value]] : [];
    }),
  );
}

/** Throws `CONFIG_INVALID` if no driver supports the address. */
export function driverOf(url: string): Driver {
  const driver = driverOfAddress(url);
  if (driver) return driver;
  const known = drivers.flatMap(({ schemes = [] }) => schemes.map((name) => `${name}:`));
  const networkAddresses = addressExamples().filter((address) => address.includes("host"));
  const host = /^[\w.-]+/.exec(url.replace(/^.*(?::\/\/|@)/s, ""))?.[0] ?? "host";
  throw new AgentError(
    "CONFIG_INVALID",
    `${shownValue(url) || "the address"} must begin with one of ${known.join(" ")}
  as in ${joinNames(networkAddresses, "or").replaceAll("host", () => host)}`,
  );
}
