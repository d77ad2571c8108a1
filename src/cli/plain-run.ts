// `tagferry run -c FILE` as units and images have it.
import type { Environment } from "../config/environment.ts";
import { defaultConfig } from "./shared/default-config.ts";

/** Its configuration. Undefined: these arguments are something else, or not for here to judge. */
export function plainRun(
  [command, option, file, ...more]: readonly string[],
  environment: Pick<Environment, "variables" | "cwd">,
): string | undefined {
  if (command !== "run" || more.length > 0) return undefined;
  if (option === undefined) return defaultConfig(environment);
  if (option !== "-c" && option !== "--config") return undefined;
  return file === undefined || file === "" || file.startsWith("-") ? undefined : file;
}
