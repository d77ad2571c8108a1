// What a broker keeps for us, remembered on our side: the filters of the persistent session and the version it spoke.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/state-file.ts";

const state = z.object({
  /** A session is the client identifier's at one broker. */
  url: z.string(),
  clientId: z.string(),
  protocolVersion: z.literal([3, 4, 5]).optional(),
  /** How often in a row the broker has hung up on version 5 without a word, although it spoke it before. */
  hangUps: z.int().min(0).default(0),
  filters: z.array(z.string()),
});
type State = z.output<typeof state>;

/** A broker that restarts hangs up a few times; one that was replaced by an older one always does. */
const maxHangUps = 5;

/** A small file in the folder of a source for what is remembered from one connection to the next. */
export class SourceStateFile<T> {
  readonly #path: string;
  readonly #schema: z.ZodType<T>;
  readonly #log: Logger;

  /** `subject`: what it is remembered of. */
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

  /** Resolves with what was saved; undefined, with a line in the log, if that cannot be read. */
  load(complaint: string): Promise<T | undefined> {
    return readStateFile(this.#path, this.#schema, (error) => this.#log.warn({ err: error }, complaint));
  }

  /** Resolves when it is on disk, or when it is logged why not. */
  save(content: T, complaint: string): Promise<void> {
    return writeStateFile(this.#path, content).catch((error: unknown) => this.#log.warn({ err: error }, complaint));
  }
}

/** One session's memory on disk. Losing it costs messages of filters no longer wanted, nothing else. */
export class SessionState {
  readonly #file: SourceStateFile<State>;
  #state: State;

  constructor(file: SourceStateFile<State>, state: State) {
    this.#file = file;
    this.#state = state;
  }

  /** The version that was spoken last; undefined if that is not to be relied on any more. */
  get protocolVersion(): 3 | 4 | 5 | undefined {
    return this.#state.hangUps < maxHangUps ? this.#state.protocolVersion : undefined;
  }

  /** The broker hung up on what it spoke before. After a few times in a row it is taken to be another broker. */
  async hungUp(): Promise<void> {
    await this.remember({ hangUps: Math.min(this.#state.hangUps + 1, maxHangUps) });
  }

  /** Filters that may be subscribed in the session. */
  get filters(): readonly string[] {
    return this.#state.filters;
  }

  /** Resolves when it is on disk, or when it is logged why not. */
  async remember(change: Partial<Pick<State, "protocolVersion" | "hangUps" | "filters">>): Promise<void> {
    const next = { ...this.#state, ...change, filters: (change.filters ?? this.#state.filters).toSorted() };
    if (JSON.stringify(next) === JSON.stringify(this.#state)) return;
    this.#state = next;
    await this.#file.save(next, "the state of the session could not be remembered");
  }
}

/** What is remembered of the session of `clientId` at `url`; nothing if it cannot be read. */
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
