// Default places of the configuration: the environment variable, the working directory, the packaged path.
import { accessSync, constants } from "node:fs";
import { resolve } from "node:path";
import { type Environment, packaged } from "../../config/files/environment.ts";
import { attempt } from "../../lib/flow/attempt.ts";

export const localConfig = "tagferry.yaml";
export const defaultPlaces = `$TAGFERRY_CONFIG, ./${localConfig}, ${packaged.config}`;

type Place = Pick<Environment, "variables" | "cwd">;

/** The first place that is set or exists, or else the packaged path. */
export function defaultConfig(environment: Place): string {
  return givenConfig(environment) ?? packaged.config;
}

/** Like `defaultConfig`. Undefined: no configuration is readable for this user. */
export function readableConfig(environment: Place): string | undefined {
  return givenConfig(environment) ?? (isThere(packaged.config, constants.R_OK) ? packaged.config : undefined);
}

function givenConfig({ variables, cwd }: Place): string | undefined {
  const { TAGFERRY_CONFIG: named = "" } = variables;
  if (named !== "") return named;
  return isThere(resolve(cwd, localConfig), constants.F_OK) ? localConfig : undefined;
}

function isThere(file: string, mode: number): boolean {
  return attempt(() => accessSync(file, mode) === undefined) ?? false;
}

/** The configuration of `tagferry run -c FILE`. Undefined: other arguments, which commander must parse. */
export function parseRunShortcut(
  [command, option, file, ...more]: readonly string[],
  environment: Place,
): string | undefined {
  if (command !== "run" || more.length > 0) return undefined;
  if (option === undefined) return defaultConfig(environment);
  if (option !== "-c" && option !== "--config") return undefined;
  return file === undefined || file === "" || file.startsWith("-") ? undefined : file;
}
