// One error class and the table of its codes. Match on `code`, never on the message.

/** What an operator should do about each code, whether trying again can help, and the exit status of a command that ends by it. */
export const errorCodes = {
  CONFIG_INVALID: {
    retryable: false,
    exit: 78,
    hint: "correct the configuration; `tagferry check -c FILE` lists every error",
  },
  SOURCE_UNREACHABLE: { retryable: true, exit: 69, hint: "check address, port, cable and firewall of the device" },
  SOURCE_REFUSED: {
    retryable: true,
    exit: 77,
    hint: "the message says what is refused; after changing it: tagferry check --online",
  },
  SOURCE_TAKEN_OVER: {
    retryable: true,
    exit: 69,
    hint: "give each source of each agent a client identifier of its own",
  },
  SOURCE_PROTOCOL: {
    retryable: true,
    exit: 69,
    hint: "the device did not answer as its protocol requires; see the message",
  },
  BUFFER_UNAVAILABLE: {
    retryable: true,
    exit: 1,
    hint: "free disk space or mend the disk; nothing more is acknowledged until then",
  },
  BUFFER_FOREIGN: {
    retryable: false,
    exit: 1,
    hint: "this backlog belongs to another integration; set the old Integration ID to deliver it, or start with an empty dataDir",
  },
  BUFFER_NEWER: {
    retryable: false,
    exit: 1,
    hint: "the data directory was written by a newer version; install that version again",
  },
  BUFFER_OLDER: {
    retryable: false,
    exit: 1,
    hint: "nothing was changed: deliver the backlog with the version that wrote it, then move the folder away, or set another agent.dataDir",
  },
  BUFFER_MISSING: {
    retryable: false,
    exit: 1,
    hint: "name the folder that agent.dataDir names, or the folder `buffer` in it",
  },
  DATA_DIR_IN_USE: {
    retryable: false,
    exit: 75,
    hint: "another tagferry runs on this data directory; stop it or set another agent.dataDir",
  },
  DATA_DIR_UNWRITABLE: {
    retryable: false,
    exit: 1,
    hint: "give the user of the agent write permission, or set another agent.dataDir",
  },
  PORT_IN_USE: { retryable: false, exit: 1, hint: "stop the program that holds the port, or set another address" },
  AGENT_UNREACHABLE: {
    retryable: true,
    exit: 69,
    hint: "start the agent with `tagferry run`, or name its address: -c FILE with its configuration, or --url",
  },
  AGENT_REFUSED: {
    retryable: false,
    exit: 77,
    hint: "ask as the user of the agent or as root, on its machine; elsewhere --token-file with what http.token says",
  },
  PACKAGE_MISSING: {
    retryable: false,
    exit: 1,
    hint: "install the packages that the message names beside the program",
  },
  SERVICE_UNREACHABLE: { retryable: true, exit: 69, hint: "check service.url, proxy and network" },
  SERVICE_UNTRUSTED: {
    retryable: true,
    exit: 69,
    hint: "nothing is sent to a service whose certificate does not hold; see the message, and check service.url, service.caFile and the clock of this machine",
  },
  SERVICE_PROTOCOL: {
    retryable: true,
    exit: 1,
    hint: "the service did not answer as its interface requires; see the message",
  },
  SERVICE_REJECTED: {
    retryable: true,
    exit: 69,
    hint: "the service refuses the points themselves; its reason is in the message and in upload/rejects.ndjson of the data directory",
  },
  SERVICE_UNCONFIRMED: {
    retryable: true,
    exit: 69,
    hint: "the service answers without naming the inputs it stored; ask its operator, and if it never names them, set service.confirmation: status",
  },
  SERVICE_REFUSED: { retryable: true, exit: 77, hint: "check service.integration and service.auth" },
} as const satisfies Record<string, { retryable: boolean; exit: number; hint: string }>;

export type ErrorCode = keyof typeof errorCodes;

/** Hint of a `SOURCE_REFUSED` whose cause is the login, and of no other: a certificate is not mended by a password. */
export const credentialsHint =
  "check the credentials: user name, password, and what this user may do at the device; then: tagferry check --online";

/** Every failure that the program itself reports. `message` says what, where and what was found; `hint` what to do. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: ErrorCode;
  readonly #hint: string | undefined;

  /** `hint`: what to do about this very failure; left out: what the table says of the code. */
  constructor(code: ErrorCode, message: string, options?: ErrorOptions & { readonly hint?: string }) {
    super(message, options);
    this.code = code;
    this.#hint = options?.hint;
  }

  get hint(): string {
    return this.#hint ?? errorCodes[this.code].hint;
  }

  get retryable(): boolean {
    return errorCodes[this.code].retryable;
  }
}

/** What an error says. Node reports some failures of connecting as an AggregateError without a message. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join("; ");
  return error instanceof Error ? error.message || error.name : String(error);
}

/** Whether `error` is an `AgentError`, of this code if one is given. */
export function isAgentError(error: unknown, code?: ErrorCode): error is AgentError {
  return error instanceof AgentError && (code === undefined || error.code === code);
}
