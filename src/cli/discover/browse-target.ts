// The target of `browse`: a typed address, or a source of a configuration with its access options.
import { lineIn } from "../../config/files/environment.ts";
import { loadConfig } from "../../config/load.ts";
import type { BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError } from "../../core/errors.ts";
import { hasOption, protocolsOf } from "../../discover/protocols.ts";
import { addressTarget, sourceTarget } from "../../discover/target.ts";
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
