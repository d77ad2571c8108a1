// The configuration that `tagferry init` writes, with comments for manual editing. Pure.
import { drivers } from "../../source/registry.ts";

export interface InitAnswers {
  readonly file: string;
  readonly agent: string;
  readonly service: string;
  readonly integration: string;
  readonly exampleIntegration: boolean;
  /** Reference to the password: `${file:service_password}`. */
  readonly password: string;
  readonly sources: readonly InitSource[];
}

export interface InitSource {
  readonly name: string;
  readonly type: string;
  readonly url?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  readonly caFile?: string | undefined;
  /** `replyUnit: any`: accepts replies with another unit than requested. */
  readonly anyUnit?: boolean | undefined;
  /** `security.mode`; undefined: the best that the server offers. */
  readonly securityMode?: string | undefined;
  readonly allowInsecurePassword?: boolean | undefined;
  /** `tags:` or `devices:`, as `browse --yaml` prints it. Undefined: a commented-out example is written. */
  readonly tags?: string | undefined;
}

export function initFile(answers: InitAnswers): string {
  const { file, agent, service, integration, exampleIntegration, password, sources } = answers;
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

defaults:
  every: 1s    # how often tags are read that say nothing else
  # signal: { labels: { site: [north] } }    # to be published as an item, a signal needs labels, a name and a unit

${sources.length === 0 ? "sources: {}    # tagferry browse URL --yaml lists what a device offers\n" : `sources:\n${sources.map(sourceText).join("\n")}`}`;
}

function sourceText(source: InitSource): string {
  const { name, type, url, username, password, caFile, anyUnit = false } = source;
  const { securityMode, allowInsecurePassword = false, tags } = source;
  const lines = [
    `${name}:    # stands in logs, metrics and status`,
    `  type: ${type}`,
    ...(url === undefined ? [] : [`  url: ${text(url)}`]),
    ...(caFile === undefined ? [] : [`  caFile: ${text(caFile)}    # the authorities whose certificates are trusted`]),
    ...(anyUnit ? ["  replyUnit: any    # the device echoes another unit than was asked"] : []),
    ...(securityMode === undefined
      ? []
      : [
          `  security: { mode: ${securityMode} }${securityMode === "none" ? "    # everything can be read and changed on the way" : ""}`,
        ]),
    ...(username === undefined ? [] : [`  username: ${text(username)}`]),
    ...(password === undefined ? [] : [`  password: ${text(password)}`]),
    ...(allowInsecurePassword
      ? ["  allowInsecurePassword: true    # the password is not protected on the way, or the server not verified"]
      : []),
    ...tagLines(type, tags).map((line) => `  ${line}`),
  ];
  return lines.map((line) => `  ${line}\n`).join("");
}

function tagLines(type: string, tags: string | undefined): readonly string[] {
  const driver = drivers.find((each) => each.type === type);
  const example = driver?.example.entries ?? [];
  if (tags === undefined && type === "simulator") return ["tags:", ...example.map((line) => `  ${line}`)];
  const lines = tags?.split("\n") ?? [];
  // A list with only commented-out entries is empty.
  if (lines.some((line) => /^\s*- /.test(line))) return lines;
  const key = driver?.device ? "devices" : "tags";
  const found = lines.slice(1);
  return [`${key}: []    # as in the line below`, ...(found.length > 0 ? found : example.map((line) => `# ${line}`))];
}

/** As YAML: unquoted if unambiguous, otherwise quoted. */
function text(value: string): string {
  return /^[A-Za-z][A-Za-z0-9_./-]*(:\/\/[A-Za-z0-9_.:/-]+)?$/.test(value) &&
    !/^(true|false|null|yes|no|on|off)$/i.test(value) &&
    !value.endsWith(":")
    ? value
    : JSON.stringify(value);
}
