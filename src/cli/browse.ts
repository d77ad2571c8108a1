// `tagferry browse`: what a broker, server or device offers, with the values it has now.
import { readFile } from "node:fs/promises";
import { AgentError } from "../core/errors.ts";
import type { BrowsedNode, BrowseTarget, Driver } from "../core/source.ts";
import { withoutUser } from "../lib/without-user.ts";
import { drivers } from "../source/registry.ts";
import { browsedYaml } from "./browsed-yaml.ts";
import { commandRuntime } from "./command-runtime.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { count } from "./figures.ts";
import { visible } from "./table.ts";

export interface BrowseOptions {
  readonly yaml?: boolean;
  readonly json?: boolean;
  readonly username?: string;
  /** One line; its line end is no part of the password. */
  readonly passwordFile?: string;
}

const longestValue = 40;

/**
 * Prints nodes as they are found; with `yaml` or `json` all of them at the end. Rejects with `CONFIG_INVALID` where the
 * address is none, and as `Driver.browse` does.
 */
export async function browse(url: string, options: BrowseOptions, io: Console): Promise<ExitStatus> {
  const driver = driverOf(url);
  const target: BrowseTarget = {
    url,
    ...(options.username !== undefined && { username: options.username }),
    ...(options.passwordFile !== undefined && { password: await passwordIn(options.passwordFile) }),
  };
  const collects = options.yaml === true || options.json === true;
  const nodes: BrowsedNode[] = [];
  let found = 0;
  io.progress("looking; ^C ends it");
  for await (const node of driver.browse?.(target, commandRuntime(), io.signal) ?? noNodes()) {
    found++;
    if (collects) nodes.push(node);
    else io.print(lineOf(node));
    io.progress(`${found} found; ^C ends it`);
  }
  io.progress(undefined);
  if (options.json === true) io.print(jsonOf({ url: withoutUser(url), type: driver.type, nodes }));
  else if (options.yaml === true) io.print(browsedYaml(nodes));
  else if (found === 0) io.print("nothing found");
  else io.complain(`${count(found, "node")} found`);
  return exitStatus.done;
}

function driverOf(url: string): Driver {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  const driver = drivers.find(({ schemes }) => scheme !== undefined && schemes?.includes(scheme));
  if (driver) return driver;
  const known = drivers.flatMap(({ schemes = [] }) => schemes.map((name) => `${name}:`));
  throw new AgentError("CONFIG_INVALID", `${url} must begin with one of ${known.join(" ")}`);
}

async function passwordIn(file: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).replace(/\r?\n$/, "");
  } catch (error) {
    throw new AgentError("CONFIG_INVALID", `--password-file ${file} cannot be read: ${String(error)}`, {
      cause: error,
    });
  }
}

function lineOf({ address, name, depth, value, signal, perSecond }: BrowsedNode): string {
  const text = value === undefined ? "" : String(value);
  const shown = text.length > longestValue ? `${text.slice(0, longestValue)}…` : text;
  const measured = signal.engUnit === undefined || shown === "" ? shown : `${shown} ${signal.engUnit}`;
  const rate = perSecond === undefined ? "" : `${perSecond.toFixed(1)}/s`.padEnd(10);
  return visible(
    `${"  ".repeat(depth)}${name.padEnd(30 - 2 * depth)}  ${measured.padEnd(16)}  ${rate}${address}`,
  ).trimEnd();
}

/** Integers that a JSON number would round are texts. */
function jsonOf(result: object): string {
  const exact = (_key: string, value: unknown) => {
    if (typeof value !== "bigint") return value;
    return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  };
  return JSON.stringify(result, exact, 2);
}

async function* noNodes(): AsyncGenerator<BrowsedNode> {}
