// How a person calls this program, for commands that are shown to be typed next.
import type { Environment } from "../../config/environment.ts";

/** What stands before a command: in the repository, where npm has run one of its scripts, another of them. */
export function typedAs({ npm_lifecycle_event: script = "" }: Environment["variables"]): string {
  return ["tagferry", "demo"].includes(script) ? "npm run tagferry --" : "tagferry";
}
