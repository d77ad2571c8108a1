// A source as the entry that `init` and the page write. Pure.
import { drivers } from "../../source/registry.ts";

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

/** The entry of `sources`, indented by two spaces; the first line has its name. Ends with a line break. */
export function sourceText(source: InitSource): string {
  const { name, type, url, username, password, caFile, anyUnit = false } = source;
  const { securityMode, allowInsecurePassword = false, tags } = source;
  const readable = securityMode === "none" ? "    # everything can be read and changed on the way" : "";
  const lines = [
    `${name}:    # stands in logs, metrics and status`,
    `  type: ${type}`,
    url !== undefined && `  url: ${yamlText(url)}`,
    caFile !== undefined && `  caFile: ${yamlText(caFile)}    # the authorities whose certificates are trusted`,
    anyUnit && "  replyUnit: any    # the device echoes another unit than requested",
    securityMode !== undefined && `  security: { mode: ${securityMode} }${readable}`,
    username !== undefined && `  username: ${yamlText(username)}`,
    password !== undefined && `  password: ${yamlText(password)}`,
    allowInsecurePassword &&
      "  allowInsecurePassword: true    # the password is not protected on the way, or the server not verified",
    ...tagLines(type, tags).map((line) => `  ${line}`),
  ];
  return lines.map((line) => (line === false ? "" : `  ${line}\n`)).join("");
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
export function yamlText(value: string): string {
  return /^[A-Za-z][A-Za-z0-9_./-]*(:\/\/[A-Za-z0-9_.:/-]+)?$/.test(value) &&
    !/^(true|false|null|yes|no|on|off)$/i.test(value) &&
    !value.endsWith(":")
    ? value
    : JSON.stringify(value);
}

/** Removes parameters that only apply to browsing. */
export function configuredUrl(url: string): string {
  const [address = "", query = ""] = url.replace("//***@", "//").split("?");
  const rest = query.split("&").filter((part) => part !== "" && !/^(unit|from|to|replyUnit)=/.test(part));
  return rest.length === 0 ? address : `${address}?${rest.join("&")}`;
}
