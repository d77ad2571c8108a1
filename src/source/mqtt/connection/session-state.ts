// Persistent client-side state of a broker session: its filters and its protocol version.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";

const state = z.object({
  /** A session belongs to a client identifier at one broker. */
  url: z.string(),
  clientId: z.string(),
  protocolVersion: z.literal([3, 4, 5]).optional(),
  /** Consecutive disconnects without a reason on version 5, although the broker supported it before. */
  hangUps: z.int().min(0).default(0),
  filters: z.array(z.string()),
});
type State = z.output<typeof state>;

/** A restarting broker disconnects a few times; one that was replaced by an older version always does. */
const maxHangUps = 5;

/** A state file in the folder of a source, for data that survives a connection. */
export class SourceStateFile<T> {
  readonly #path: string;
  readonly #schema: z.ZodType<T>;
  readonly #log: Logger;

  /** `subject`: what the state belongs to, such as broker and client identifier. */
  constructor(
    { folder, kind, subject }: { readonly folder: string; readonly kind: string; readonly subject: string },
    schema: z.ZodType<T>,
    log: Logger,
  ) {
    const name = createHash("sha256").update(subject).digest("hex").slice(0, 16);
    this.#path = join(folder, `${kind}-${name}.json`);
    this.#schema = schema;
    this.#log = log;
  }

  /** Resolves with the saved content. Undefined, with a log line, if it cannot be read. */
  load(complaint: string): Promise<T | undefined> {
    return readStateFile(this.#path, this.#schema, (error) => this.#log.warn({ err: error }, complaint));
  }

  /** Resolves once the content is on disk, or the failure is logged. */
  save(content: T, complaint: string): Promise<void> {
    return writeStateFile(this.#path, content).catch((error: unknown) => this.#log.warn({ err: error }, complaint));
  }
}

/** Persistent state of one session. If it is lost, stale subscriptions stay at the broker; nothing else is affected. */
export class SessionState {
  readonly #file: SourceStateFile<State>;
  #state: State;

  constructor(file: SourceStateFile<State>, state: State) {
    this.#file = file;
    this.#state = state;
  }

  /** Last negotiated version. Undefined: unknown or no longer reliable. */
  get protocolVersion(): 3 | 4 | 5 | undefined {
    return this.#state.hangUps < maxHangUps ? this.#state.protocolVersion : undefined;
  }

  /** Records a disconnect without a reason. After several in a row the known version is discarded. */
  async hungUp(): Promise<void> {
    await this.remember({ hangUps: Math.min(this.#state.hangUps + 1, maxHangUps) });
  }

  /** Filters that the session may contain. */
  get filters(): readonly string[] {
    return this.#state.filters;
  }

  async remember(change: Partial<Pick<State, "protocolVersion" | "hangUps" | "filters">>): Promise<void> {
    const next = { ...this.#state, ...change, filters: (change.filters ?? this.#state.filters).toSorted() };
    if (JSON.stringify(next) === JSON.stringify(this.#state)) return;
    this.#state = next;
    await this.#file.save(next, "the state of the session could not be remembered");
  }
}

/** Loads the state of the session of `clientId` at `url`. An unreadable file counts as empty. */
export async function loadSessionState(
  folder: string,
  session: { readonly url: string; readonly clientId: string },
  log: Logger,
): Promise<SessionState> {
  const subject = JSON.stringify([session.url, session.clientId]);
  const file = new SourceStateFile<State>({ folder, kind: "session", subject }, state, log);
  const known = await file.load("the remembered state of the session cannot be read");
  return new SessionState(file, known ?? { ...session, hangUps: 0, filters: [] });
}
