// `tagferry browse`: lists what a broker, server or device offers, with current values.

import type { BrowsedNode, BrowseTarget } from "../../core/commissioning.ts";
import type { Driver } from "../../core/driver.ts";
import { AgentError, credentialsHint, isAgentError } from "../../core/errors.ts";
import { browsedYaml } from "../../discover/tags-yaml.ts";
import { visible } from "../../lib/text/visible.ts";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { commandRuntime } from "../shared/command-runtime.ts";
import type { Console } from "../terminal/console.ts";
import { columns, count, printResult } from "../terminal/text.ts";
import { browseTarget, type TargetOptions } from "./browse-target.ts";
import { printRecipe } from "./recipes.ts";

interface BrowseOptions extends TargetOptions {
  readonly yaml?: boolean;
  readonly json?: boolean;
  /** Lists only the endpoints of the device. */
  readonly endpoints?: boolean;
  /** Prints this recipe and looks at no device; `true` lists the recipes. */
  readonly recipe?: string | true;
}

const longestValue = 40;

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
  const text = value === undefined ? "" : String(value);
  const shown = text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
  const measured = signal.engUnit === undefined || shown === "" ? shown : `${shown} ${signal.engUnit}`;
  const rate = perSecond === undefined ? "" : `${perSecond.toFixed(1)}/s`.padEnd(10);
  const typed = type === "" ? "" : `${type.padEnd(10)}  `;
  return visible(
    `${"  ".repeat(depth)}${name.padEnd(30 - 2 * depth)}  ${measured.padEnd(16)}  ${typed}${rate}${address}`,
  ).trimEnd();
}
