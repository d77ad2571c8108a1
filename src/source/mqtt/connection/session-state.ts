// Persistent client-side state of a broker session: its filters and its protocol version.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";

const schema = z.object({
  /** A session belongs to a client identifier at one broker. */
  url: z.string(),
  clientId: z.string(),
  protocolVersion: z.literal([3, 4, 5]).optional(),
  /** Consecutive disconnects without a reason on version 5, although the broker supported it before. */
  hangUps: z.int().min(0).default(0),
  filters: z.array(z.string()),
});
type State = z.output<typeof schema>;

/** A restarting broker disconnects a few times; one that was replaced by an older version always does. */
const maxHangUps = 5;

/**
 * A state file in the folder of a source, for data that survives a connection. `subject`: what the state belongs to, such
 * as broker and client identifier.
 */
export function sourceStateFile<T>(
  { folder, kind, subject }: { readonly folder: string; readonly kind: string; readonly subject: string },
  schema: z.ZodType<T>,
  log: Logger,
) {
  const name = createHash("sha256").update(subject).digest("hex").slice(0, 16);
  const path = join(folder, `${kind}-${name}.json`);
  const complain = (complaint: string) => (error: unknown) => log.warn({ err: error }, complaint);
  return {
    /** Resolves with the saved content. Undefined, with a log line, if it cannot be read. */
    load: (complaint: string): Promise<T | undefined> => readStateFile(path, schema, complain(complaint)),
    /** Resolves once the content is on disk, or the failure is logged. */
    save: (content: T, complaint: string): Promise<void> => writeStateFile(path, content).catch(complain(complaint)),
  };
}

/** Persistent state of one session. If it is lost, stale subscriptions stay at the broker; nothing else is affected. */
export type SessionState = Awaited<ReturnType<typeof loadSessionState>>;

/** Loads the state of the session of `clientId` at `url`. An unreadable file counts as empty. */
export async function loadSessionState(
  folder: string,
  session: { readonly url: string; readonly clientId: string },
  log: Logger,
) {
  const subject = JSON.stringify([session.url, session.clientId]);
  const file = sourceStateFile<State>({ folder, kind: "session", subject }, schema, log);
  const known = await file.load("the remembered state of the session cannot be read");
  let state: State = known ?? { ...session, hangUps: 0, filters: [] };

  async function remember(change: Partial<Pick<State, "protocolVersion" | "hangUps" | "filters">>): Promise<void> {
    const next = { ...state, ...change, filters: (change.filters ?? state.filters).toSorted() };
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    state = next;
    await file.save(next, "the state of the session could not be remembered");
  }

  return {
    /** Last negotiated version. Undefined: unknown or no longer reliable. */
    get protocolVersion() {
      return state.hangUps < maxHangUps ? state.protocolVersion : undefined;
    },
    /** Filters that the session may contain. */
    get filters(): readonly string[] {
      return state.filters;
    },
    remember,
    /** Records a disconnect without a reason. After several in a row the known version is discarded. */
    hungUp: () => remember({ hangUps: Math.min(state.hangUps + 1, maxHangUps) }),
  };
}
