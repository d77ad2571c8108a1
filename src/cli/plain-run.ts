// `tagferry run -c FILE` as units and images have it.
import { defaultConfig } from "./default-config.ts";

/** Its configuration. Undefined: these arguments are something else, or not for here to judge. */
export function plainRun([command, option, file, ...more]: readonly string[]): string | undefined {
  if (command !== "run" || more.length > 0) return undefined;
  if (option === undefined) return defaultConfig;
  if (option !== "-c" && option !== "--config") return undefined;
  return file === undefined || file === "" || file.startsWith("-") ? undefined : file;
}
