// The configuration that `tagferry init` writes, with comments for manual editing. Pure.
import { shellWord } from "../../core/errors.ts";
import { includeLine } from "../../discover/change/config-files.ts";
import { type InitSource, sourceText, yamlText as text } from "../../discover/tags/source-yaml.ts";

export interface InitAnswers {
  readonly file: string;
  readonly agent: string;
  readonly service: string;
  readonly integration: string;
  readonly exampleIntegration: boolean;
  /** Reference to the password: `${file:service_password}`. */
  readonly password: string;
  readonly sources: readonly InitSource[];
  /** Whether the folder for files of the page "Add tags" is there, so that it can be included. */
  readonly includes: boolean;
}

export function initFile(answers: InitAnswers): string {
  const file = shellWord(answers.file);
  const { agent, service, integration, exampleIntegration, password, sources, includes } = answers;
  return `# yaml-language-server: $schema=./tagferry.schema.json
# Configuration of tagferry. Every option: tagferry schema --reference
#   tagferry check -c ${file}    every error with its line, or what it will cost
#   tagferry test -c ${file}     reads every tag and shows what comes, sends nothing
#   tagferry run -c ${file}      runs the agent; status page at http://127.0.0.1:8421
version: 1

agent:
  name: ${text(agent)}    # in logs, metrics and the status page; another one for each agent of a plant
  # dataDir: /var/lib/tagferry    # the buffer; default: $STATE_DIRECTORY, else /var/lib/tagferry for the package, ./data elsewhere

service:
  url: ${text(service)}    # requests go to {url}/rpc
  integration: ${text(integration)}    # Integration ID${exampleIntegration ? ": an example, put yours here" : ""}
  auth:
${password.startsWith("${file:") ? "    # The file holds the password and nothing else; only the user of the agent needs to read it.\n" : ""}    basic: { password: ${text(password)} }

# Points wait on disk until the service has them. Where that is too little, the oldest go, and are counted.
buffer: { maxSize: 2GiB, maxAge: 30d, whenFull: dropOldest }

http: { listen: 127.0.0.1:8421 }    # status page, /metrics, /healthz, /readyz

# Files with further sources. The page "Add tags" writes its own there; the folder has to exist.
${includes ? "" : "# "}${includeLine}

defaults:
  every: 1s    # how often tags are read that say nothing else
  # signal: { labels: { site: [north] } }    # to be published as an item, a signal needs labels, a name and a unit

${sources.length === 0 ? "sources: {}    # tagferry browse URL --yaml lists what a device offers\n" : `sources:\n${sources.map(sourceText).join("\n")}`}`;
}
