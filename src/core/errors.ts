// One error class and the table of its codes. Match on `code`, never on the message.

/** Hint for the operator, and the exit status of a command that fails with the code. */
export const errorCodes = {
  CONFIG_INVALID: { exit: 78, hint: "correct the configuration; `tagferry check -c FILE` lists every error" },
  SOURCE_UNREACHABLE: { exit: 69, hint: "check address, port, cable and firewall of the device" },
  SOURCE_REFUSED: { exit: 77, hint: "the message says what is refused; after changing it: tagferry check --online" },
  SOURCE_TAKEN_OVER: { exit: 69, hint: "give each source of each agent a client identifier of its own" },
  SOURCE_PROTOCOL: { exit: 69, hint: "the device did not answer as its protocol requires; see the message" },
  BUFFER_UNAVAILABLE: { exit: 1, hint: "free disk space or repair the disk; nothing more is acknowledged until then" },
  BUFFER_FOREIGN: {
    exit: 1,
    hint: "this backlog belongs to another integration; set the old Integration ID to deliver it, or start with an empty dataDir",
  },
  BUFFER_NEWER: { exit: 1, hint: "the data directory was written by a newer version; install that version again" },
  BUFFER_OLDER: {
    exit: 1,
    hint: "nothing was changed: deliver the backlog with the version that wrote it, then move the folder away, or set another agent.dataDir",
  },
  BUFFER_MISSING: { exit: 1, hint: "name the folder that agent.dataDir names, or the folder `buffer` in it" },
  DATA_DIR_IN_USE: {
    exit: 75,
    hint: "another tagferry runs on this data directory; stop it, or name another one: agent.dataDir, or --data of the local service",
  },
  DATA_DIR_UNWRITABLE: {
    exit: 1,
    hint: "give its user write permission, free disk space, or name another folder: agent.dataDir, or --data of the local service",
  },
  PORT_IN_USE: { exit: 1, hint: "stop the program that holds the port, or set another address" },
  AGENT_UNREACHABLE: {
    exit: 69,
    hint: "start the agent with `tagferry run`, or name its address: -c FILE with its configuration, or --url",
  },
  AGENT_REFUSED: {
    exit: 77,
    hint: "ask as the user of the agent or as root, on its machine; elsewhere --token-file with what http.token says",
  },
  PACKAGE_MISSING: { exit: 1, hint: "install the packages that the message names next to the program" },
  SERVICE_UNREACHABLE: { exit: 69, hint: "check service.url, proxy and network" },
  SERVICE_UNTRUSTED: {
    exit: 69,
    hint: "nothing is sent to a service with an invalid certificate; see the message, and check service.url, service.caFile and the clock of this machine",
  },
  SERVICE_PROTOCOL: { exit: 1, hint: "the service did not answer as its interface requires; see the message" },
  SERVICE_REJECTED: {
    exit: 69,
    hint: "the service refuses the points themselves; its reason is in the message and in upload/rejects.ndjson of the data directory",
  },
  SERVICE_UNCONFIRMED: {
    exit: 69,
    hint: "the service answers without naming the inputs it stored; ask its operator, and if it never names them, set service.confirmation: status",
  },
  SERVICE_REFUSED: { exit: 77, hint: "check service.integration and service.auth" },
  CLUSTER_UNREACHABLE: {
    exit: 69,
    hint: "check cluster.servers, the network, and that most of the servers run with JetStream",
  },
  CLUSTER_REFUSED: {
    exit: 77,
    hint: "check user, password, credsFile, nkeyFile and tls of cluster, and what this user may do at the servers",
  },
  CLUSTER_FULL: {
    exit: 1,
    hint: "the stream has cluster.maxSize: let it drain, or raise cluster.maxSize within the disks of the servers",
  },
  CLUSTER_FENCED: { exit: 1, hint: "none: another agent delivers now, and this one waits for its turn" },
} as const satisfies Record<string, { exit: number; hint: string }>;

export type ErrorCode = keyof typeof errorCodes;

/** Hint of a `SOURCE_REFUSED` that a wrong login caused. A refused certificate needs another hint. */
export const credentialsHint =
  "check the credentials: user name, password, and what this user may do at the device; then: tagferry check --online";

/** Every failure that the program reports. `message`: what failed, where, what was found. `hint`: the remedy. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: ErrorCode;
  readonly #hint: string | undefined;

  /** `hint`: the remedy for this failure. Omitted: the hint of its code in the table. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { readonly hint?: string | undefined }) {
    super(message, options);
    this.code = code;
    this.#hint = options?.hint;
  }

  get hint(): string {
    return this.#hint ?? errorCodes[this.code].hint;
  }
}

const misplaced = "mv PATH PATH.aside moves it away";
const full = ["free space on the disk", "none", "df -h PATH shows which disk is full: make room on it"] as const;
const forbidden = [
  "permission to use it",
  "none",
  "namei -l PATH shows which part of the path belongs to others: run this as the user of the agent or as root, or chown that part to it",
] as const;

/** Error code of the system → expected state, found state and remedy. */
const fileFailures: Readonly<Record<string, readonly [expected: string, found: string, remedy: string]>> = {
  EEXIST: ["a folder", "a file", misplaced],
  ENOTDIR: ["a folder at each level of the path", "a file", "namei -l PATH shows where it is: move it away"],
  EISDIR: ["a file", "a folder", misplaced],
  EACCES: forbidden,
  EPERM: forbidden,
  EROFS: [
    "a disk that can be written",
    "one that is read-only",
    "findmnt -T PATH shows it: mount it with -o remount,rw",
  ],
  ENOSPC: full,
  EDQUOT: full,
};
/** Codes that only file system calls return. Calls on an open descriptor report them without a path. */
const diskCodes = ["EROFS", "ENOSPC", "EDQUOT"];

/** The text and hint of a failed call on a file or folder. Undefined: `error` is not such a failure. */
export function fileFailure(error: unknown): { readonly message: string; readonly remedy: string } | undefined {
  if (!(error instanceof Error && "code" in error && "syscall" in error)) return undefined;
  const { code, syscall } = error;
  const path = "path" in error ? String(error.path) : undefined;
  const [expected, found, remedy] = fileFailures[String(code)] ?? [];
  if (path === undefined && !diskCodes.includes(String(code))) return undefined;
  // EEXIST of an exclusively created file does not concern a folder.
  if (remedy === undefined || (code === "EEXIST" && syscall !== "mkdir")) return undefined;
  const message = `expected ${expected}, found ${found} (${String(code)})`;
  return path === undefined
    ? { message, remedy: remedy.replaceAll(" PATH", "") }
    : { message: `${path}: ${message}`, remedy: remedy.replaceAll("PATH", () => shellWord(path)) };
}

/** `word` as a shell of `platform` takes it for one argument: in quotes only if it needs them. */
export function shellWord(word: string, platform: NodeJS.Platform = process.platform): string {
  // Paths on Windows contain backslashes and never quotes, and only double quotes work in both cmd.exe and PowerShell.
  if (platform === "win32") return /^[\w+=:.\\/~-]+$/.test(word) ? word : `"${word}"`;
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Of a TLS error, Node's advice about its own flags. Here an option names the authority. */
const adviceOfNode = /; if the root CA is installed locally, try running Node\.js with .*$/;

/** The message of an error. Node reports some failed connections as an AggregateError without a message. */
export function reasonOf(error: unknown): string {
  const { message } = fileFailure(error) ?? {};
  if (message !== undefined) return message;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join("; ");
  return error instanceof Error ? error.message.replace(adviceOfNode, "") || error.name : String(error);
}

export function remedyOf(error: unknown): string | undefined {
  return error instanceof AgentError ? error.hint : fileFailure(error)?.remedy;
}

/** Whether `error` is an `AgentError`, of this code if one is given. */
export function isAgentError(error: unknown, code?: ErrorCode): error is AgentError {
  return error instanceof AgentError && (code === undefined || error.code === code);
}

/** Throws if data from outside violates the types. */
export function unreachable(value: never): never {
  throw new TypeError(`unexpected value: ${JSON.stringify(value)}`);
}

/** A command line for the shell of `platform`: `tagferry`, then `words`, then `-c configFile` if it is known. */
export function commandLine(
  words: readonly string[],
  configFile: string | undefined,
  platform: NodeJS.Platform = process.platform,
): string {
  const all = ["tagferry", ...words, ...(configFile === undefined ? [] : ["-c", configFile])];
  return all.map((word) => shellWord(word, platform)).join(" ");
}

/** The code of an error of Node, such as `ENOENT`. Undefined: it has none. */
export function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
