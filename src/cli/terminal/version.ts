// What the program is called, and which version it is.
import description from "../../../package.json" with { type: "json" };
import type { Environment } from "../../config/environment.ts";

export function version(): string {
  return description.version;
}

/** What stands before a command: in the repository, where npm has run one of its scripts, another of them. */
export function typedAs({ npm_lifecycle_event: script = "" }: Environment["variables"]): string {
  return ["tagferry", "demo"].includes(script) ? "npm run tagferry --" : "tagferry";
}
