// The target of `browse`: a typed address, or a source of a configuration with its access options.
import { resolve } from "node:path";
import { sourceAddress } from "../../agent/upkeep/source-address.ts";
import { lineIn } from "../../config/environment.ts";
import { loadConfig } from "../../config/load.ts";
import { joinNames } from "../../config/suggest.ts";
import type { BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError } from "../../core/errors.ts";
import { Secret } from "../../core/secret.ts";
import { holdsUser, shownValue, withoutSecrets } from "../../lib/without-secrets.ts";
import { drivers } from "../../source/registry.ts";
import { addressExamples, driverOfAddress, hasOption, protocolsOf } from "../shared/protocols.ts";
import type { Console } from "../terminal/console.ts";

export interface TargetOptions {
  readonly config?: string;
  readonly source?: string;
  readonly username?: string;
  /** One line; the line break is not part of the password. */
  readonly passwordFile?: string;
  readonly userCert?: string;
  readonly userKey?: string;
  readonly securityMode?: string;
  readonly policy?: string;
  readonly trust?: string;
  readonly replyUnit?: "any";
}

/** Rejects with `CONFIG_INVALID` if no driver supports the address or the source does not exist. */
export async function browseTarget(
  url: string | undefined,
  options: TargetOptions,
  io: Console,
): Promise<{ readonly driver: Driver; readonly target: BrowseTarget }> {
  const { driver, target }: { driver: Driver; target: BrowseTarget } =
    options.source === undefined ? ofAddress(url) : await ofSource(url, options, io);
  const { username, passwordFile, userCert, userKey, securityMode, policy, trust, replyUnit } = options;
  if (replyUnit !== undefined && !hasOption(driver, "replyUnit"))
    throw new AgentError(
      "CONFIG_INVALID",
      `--reply-unit is of ${protocolsOf("replyUnit")}, ${target.url} is ${driver.type}`,
    );
  if (policy !== undefined && securityMode === undefined)
    throw new AgentError("CONFIG_INVALID", "--policy needs --security-mode beside it: sign or signAndEncrypt");
  if ((userCert === undefined) !== (userKey === undefined))
    throw new AgentError("CONFIG_INVALID", "--user-cert and --user-key stand together");
  return {
    driver,
    target: {
      ...target,
      ...(username !== undefined && { username }),
      ...(passwordFile !== undefined && { password: await lineIn(passwordFile, "--password-file", "CONFIG_INVALID") }),
      ...(userCert !== undefined &&
        userKey !== undefined && { userCertificate: { certFile: userCert, keyFile: userKey } }),
      ...(securityMode !== undefined && { security: { mode: securityMode, ...(policy !== undefined && { policy }) } }),
      ...(trust !== undefined && { trust }),
      ...(replyUnit !== undefined && { options: { ...target.options, replyUnit } }),
    },
  };
}

function ofAddress(url: string | undefined) {
  if (url === undefined)
    throw new AgentError("CONFIG_INVALID", "say where to look: an address, or -c FILE with --source NAME");
  const driver = driverOf(url);
  if (holdsUser(url))
    throw new AgentError(
      "CONFIG_INVALID",
      `${withoutSecrets(url)}: name and password stand in --username NAME --password-file FILE, not in the address`,
    );
  return { driver, target: { url } };
}

/** The address, login, security and certificates of a configured source. */
async function ofSource(url: string | undefined, { config: file = "", source }: TargetOptions, io: Console) {
  const { agent, sources } = await loadConfig(file, io.environment);
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
    `${shownValue(url)} must begin with one of ${known.join(" ")}
  as in ${joinNames(networkAddresses, "or").replaceAll("host", () => host)}`,
  );
}
