import description from "../../../package.json" with { type: "json" };
import type { Environment } from "../../config/environment.ts";

export function version(): string {
  return description.version;
}

/** The command to type: in the repository, after npm has run one of its scripts, another npm script. */
export function typedAs({ npm_lifecycle_event: script = "" }: Environment["variables"]): string {
  return ["tagferry", "demo"].includes(script) ? "npm run tagferry --" : "tagferry";
}
