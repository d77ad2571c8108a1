// The option that names the configuration, alike in every command.
import { Option } from "commander";
import type { Console } from "../terminal/console.ts";
import type { AgentAddressOptions } from "./agent-address.ts";
import { defaultConfig, defaultPlaces, readableConfig } from "./default-config.ts";

export function configOption({ environment }: Pick<Console, "environment">, what = "configuration"): Option {
  return new Option("-c, --config <file>", what).default(defaultConfig(environment), defaultPlaces);
}

/** For commands that ask an agent, which is found without a configuration as well. */
export function agentConfigOption(what: string): Option {
  return new Option("-c, --config <file>", `${what} (default: ${defaultPlaces}, unless --url is given)`);
}

/** `options` with the configuration that is there. With `--url` none: what it holds is not meant for that agent. */
export function located<O extends AgentAddressOptions>(options: O, { environment }: Pick<Console, "environment">): O {
  if (options.config !== undefined || options.url !== undefined) return options;
  const config = readableConfig(environment);
  return config === undefined ? options : { ...options, config };
}
