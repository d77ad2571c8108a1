// `tagferry browse`: lists what a broker, server or device offers, with current values.

import { lineIn } from "../../config/files/environment.ts";
import { loadConfig } from "../../config/load.ts";
import type { BrowsedNode, BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError, credentialsHint, isAgentError } from "../../core/errors.ts";
import { hasOption, protocolsOf } from "../../discover/device/protocols.ts";
import { addressTarget, sourceTarget } from "../../discover/device/target.ts";
import { browsedYaml } from "../../discover/tags/browsed.ts";
import { visible } from "../../lib/text/visible.ts";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { columns, count, cut, printResult } from "../terminal/text.ts";
import { printRecipe } from "./recipes.ts";

interface BrowseOptions extends TargetOptions {
  readonly yaml?: boolean;
  readonly json?: boolean;
  /** Lists only the endpoints of the device. */
  readonly endpoints?: boolean;
  /** Prints this recipe and looks at no device; `true` lists the recipes. */
  readonly recipe?: string | true;
}

/** Rejects with `CONFIG_INVALID` for an invalid address, and as `Driver.browse` does. */
export async function browse(url: string | undefined, options: BrowseOptions, io: Console): Promise<void> {
  if (options.recipe !== undefined) {
    if (url !== undefined)
      throw new AgentError(
        "CONFIG_INVALID",
        `--recipe looks at no device: leave out ${withoutSecrets(url)}, or --recipe`,
      );
    return printRecipe(options.recipe, options, io);
  }
  const { driver, target } = await browseTarget(url, options, io);
  try {
    return await browseAt(driver, target, options, io);
  } catch (error) {
    // The hint about a login fits only an error that is caused by a missing login.
    if (!isAgentError(error) || error.hint !== credentialsHint || options.source !== undefined) throw error;
    if (options.username !== undefined) throw error;
    const hint =
      "a login goes into --username NAME --password-file FILE; -c FILE --source NAME looks as a configured source does";
    throw new AgentError(error.code, error.message, { cause: error, hint });
  }
}

async function browseAt(driver: Driver, target: BrowseTarget, options: BrowseOptions, io: Console): Promise<void> {
  if (options.endpoints === true) return await listEndpoints(driver, target, options, io);
  const collects = options.yaml === true || options.json === true;
  const nodes: BrowsedNode[] = [];
  let found = 0;
  io.progress("looking; ^C ends it");
  for await (const node of driver.browse?.(target, commandRuntime(), io.signal) ?? []) {
    found++;
    if (collects) nodes.push(node);
    else io.print(lineOf(node));
    io.progress(`${found} found; ^C ends it`);
  }
  io.progress(undefined);
  const { security } = target;
  const result = { url: withoutSecrets(target.url), type: driver.type, ...(security && { security }), nodes };
  if (collects) printResult(options, result, () => [browsedYaml(nodes)], io);
  else if (found === 0) io.print("nothing found");
  else io.complain(`${count(found, "node")} found`);
}

async function listEndpoints(driver: Driver, target: BrowseTarget, options: BrowseOptions, io: Console) {
  const offered = await driver.endpoints?.(target, commandRuntime(), io.signal);
  if (!offered) throw new AgentError("CONFIG_INVALID", `${driver.type} knows no endpoints; leave --endpoints out`);
  const rows = offered.map(({ security, logins, address, certificate = "", warning = "" }) => [
    security,
    logins.join(", "),
    address,
    certificate,
    warning,
  ]);
  const result = { url: withoutSecrets(target.url), type: driver.type, endpoints: offered };
  printResult(options, result, () => columns([["security", "logins", "address", "certificate", ""], ...rows]), io);
}

function lineOf({ address, name, depth, value, type = "", signal, perSecond }: BrowsedNode): string {
  const shown = value === undefined ? "" : cut(String(value));
  const measured = signal.engUnit === undefined || shown === "" ? shown : `${shown} ${signal.engUnit}`;
  const rate = perSecond === undefined ? "" : `${perSecond.toFixed(1)}/s`.padEnd(10);
  const typed = type === "" ? "" : `${type.padEnd(10)}  `;
  return visible(
    `${"  ".repeat(depth)}${name.padEnd(30 - 2 * depth)}  ${measured.padEnd(16)}  ${typed}${rate}${address}`,
  ).trimEnd();
}

interface TargetOptions {
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
async function browseTarget(
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
    throw new AgentError("CONFIG_INVALID", "--policy needs --security-mode sign or signAndEncrypt");
  if ((userCert === undefined) !== (userKey === undefined))
    throw new AgentError("CONFIG_INVALID", "--user-cert and --user-key are required together");
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
  return addressTarget(url, "--username NAME --password-file FILE");
}

async function ofSource(url: string | undefined, { config: file = "", source = "" }: TargetOptions, io: Console) {
  return sourceTarget(await loadConfig(file, io.environment), { file, source, url });
}
