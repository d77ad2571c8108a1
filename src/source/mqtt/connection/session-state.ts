// Persistent client-side state of a broker session: its filters and its protocol version.
import { createHash } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import { stateFile } from "../../../lib/files/state-file.ts";

const schema = z.object({
  /** A session belongs to a client identifier at one broker. */
  url: z.string(),
  clientId: z.string(),
  protocolVersion: z.literal([3, 4, 5]).optional(),
  /** Consecutive disconnects without a reason on version 5, although the broker supported it before. */
  hangUps: z.int().min(0).default(0),
  /** Filters that the session may contain. */
  filters: z.array(z.string()),
  /** Those of `filters` whose last SUBSCRIBE or UNSUBSCRIBE has no answer yet. */
  unanswered: z.array(z.string()).default([]),
  /** Those of `filters` that the broker granted with QoS 0 although more was requested. */
  unprotected: z.array(z.string()).default([]),
  /** What the answered filters were requested for. Undefined: a file of an older version does not say. */
  request: z.object({ qos: z.literal([0, 1, 2]), retainedOf: z.string() }).optional(),
});
type State = z.output<typeof schema>;

/** How filters are requested. `retainedOf`: fingerprint of the tags' filters that use retained messages. */
type SubscriptionRequest = NonNullable<State["request"]>;

/** The request of `qos` for tags of which those with the filters `retained` use retained messages. */
export function subscriptionRequest(qos: 0 | 1 | 2, retained: readonly string[]): SubscriptionRequest {
  const distinct = [...new Set(retained)].toSorted();
  return { qos, retainedOf: createHash("sha256").update(distinct.join("\n")).digest("hex").slice(0, 16) };
}

/** A restarting broker disconnects a few times; one that was replaced by an older version always does. */
const maxHangUps = 5;

/** Path of a state file of a source. `subject`: what the state belongs to, such as broker and client identifier. */
export function statePath(folder: string, kind: string, subject: string): string {
  return join(folder, `${kind}-${createHash("sha256").update(subject).digest("hex").slice(0, 16)}.json`);
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
  const file = stateFile(statePath(folder, "session", subject), schema, {
    log,
    unreadable: "the remembered state of the session cannot be read",
    unwritable: "the state of the session could not be remembered",
  });
  let state: State = (await file.load()) ?? { ...session, hangUps: 0, filters: [], unanswered: [], unprotected: [] };

  async function remember(change: Partial<Omit<State, "url" | "clientId">>): Promise<void> {
    const next = { ...state, ...change, filters: (change.filters ?? state.filters).toSorted() };
    if (JSON.stringify(next) === JSON.stringify(state)) return;
    state = next;
    await file.save(next);
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
    /** Filters that the session contains for certain. */
    get answered(): readonly string[] {
      const unanswered = new Set(state.unanswered);
      return state.filters.filter((filter) => !unanswered.has(filter));
    },
    /** Filters of the session that the broker has granted as `request` says, with the QoS granted. */
    granted({ qos, retainedOf }: SubscriptionRequest): ReadonlyMap<string, number> {
      const { request } = state;
      if (request?.qos !== qos || request.retainedOf !== retainedOf) return new Map();
      const unprotected = new Set(state.unprotected);
      return new Map(this.answered.map((filter) => [filter, unprotected.has(filter) ? 0 : qos]));
    },
    /** Whether retained messages were requested for the same tags. */
    hasRetainedOf: ({ retainedOf }: SubscriptionRequest): boolean => state.request?.retainedOf === retainedOf,
    remember,
    /** Records a disconnect without a reason. After several in a row the known version is discarded. */
    hungUp: () => remember({ hangUps: Math.min(state.hangUps + 1, maxHangUps) }),
  };
}
