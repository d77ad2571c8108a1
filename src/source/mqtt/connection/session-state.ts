// What a broker keeps for us, remembered on our side: the filters of the persistent session and the version it spoke.
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { writeAtomically } from "../../../lib/atomic-file.ts";

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

/** One session's memory on disk. Losing it costs messages of filters no longer wanted, nothing else. */
export class SessionState {
  readonly #folder: string;
  readonly #log: Logger;
  #state: State;

  constructor(folder: string, state: State, log: Logger) {
    this.#folder = folder;
    this.#state = state;
    this.#log = log;
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
    const text = JSON.stringify(next);
    if (text === JSON.stringify(this.#state)) return;
    this.#state = next;
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await writeAtomically(fileOf(this.#folder, next), text);
    } catch (error) {
      this.#log.warn({ err: error }, "the state of the session could not be remembered");
    }
  }
}

/** What is remembered of the session of `clientId` at `url`; nothing if it cannot be read. */
export async function loadSessionState(
  folder: string,
  session: { readonly url: string; readonly clientId: string },
  log: Logger,
): Promise<SessionState> {
  const nothing: State = { ...session, hangUps: 0, filters: [] };
  try {
    const known = state.parse(JSON.parse(await readFile(fileOf(folder, session), "utf8")));
    return new SessionState(folder, known, log);
  } catch (error) {
    if (!isMissing(error)) log.warn({ err: error }, "the remembered state of the session cannot be read");
    return new SessionState(folder, nothing, log);
  }
}

function fileOf(folder: string, { url, clientId }: Pick<State, "url" | "clientId">): string {
  const name = createHash("sha256")
    .update(JSON.stringify([url, clientId]))
    .digest("hex")
    .slice(0, 16);
  return join(folder, `session-${name}.json`);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
