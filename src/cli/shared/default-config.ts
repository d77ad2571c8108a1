// Where commands look for the configuration without -c: the variable, the working directory, the package's place.
import { accessSync, constants } from "node:fs";
import { resolve } from "node:path";
import type { Environment } from "../../config/environment.ts";

/** Where the package has it. */
export const packagedConfig = "/etc/tagferry/tagferry.yaml";
export const localConfig = "tagferry.yaml";
/** The data directory of the unit, for commands that are not started by it. */
const packagedData = "/var/lib/tagferry";
/** For the help. */
export const defaultPlaces = `$TAGFERRY_CONFIG, ./${localConfig}, ${packagedConfig}`;

type Place = Pick<Environment, "variables" | "cwd">;

/** The first of them that is given or there; the last where none is. */
export function defaultConfig(environment: Place): string {
  return givenConfig(environment) ?? packagedConfig;
}

/** As `defaultConfig`, for commands that need no configuration: undefined where there is none that this user may read. */
export function readableConfig(environment: Place): string | undefined {
  return givenConfig(environment) ?? (isThere(packagedConfig, constants.R_OK) ? packagedConfig : undefined);
}

/**
 * What `agent.dataDir` has to say in a new configuration at `target`, so that commands typed by a person look where the agent
 * does. Undefined: the default will do.
 */
export function dataDirFor(target: string, { variables }: Pick<Environment, "variables">): string | undefined {
  return target === packagedConfig && !variables.STATE_DIRECTORY ? packagedData : undefined;
}

function givenConfig({ variables, cwd }: Place): string | undefined {
  const { TAGFERRY_CONFIG: named = "" } = variables;
  if (named !== "") return named;
  return isThere(resolve(cwd, localConfig), constants.F_OK) ? localConfig : undefined;
}

function isThere(file: string, mode: number): boolean {
  try {
    accessSync(file, mode);
    return true;
  } catch {
    return false;
  }
}
