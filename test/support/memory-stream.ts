// The stream of points in memory with the behaviour of nats-server 2.15: it checks duplicates before the expected last
// sequence, and that before the size; sequences ascend across purges. `peer` tests run the same cases on the real
// server.
import type { PointStream, StreamMessage, StreamState } from "../../src/cluster/connection/jetstream.ts";
import { AgentError } from "../../src/core/errors.ts";

interface StoredMessage extends StreamMessage {
  readonly subject: string;
}

export interface MemoryStream extends PointStream {
  /**
   * Each call awaits it, with its name; it may reject. A rejection in `after` is like a lost answer: the call took
   * effect.
   */
  before: (call: string) => Promise<void> | void;
  after: (call: string) => Promise<void> | void;
  maxBytes: number;
  readonly messages: readonly StoredMessage[];
  /** Deletes the stream, as an operator may. */
  delete(): void;
  /** Loses the last `count` messages and changes the leader, as when a quorum of servers loses unsynced data. */
  loseLast(count: number): void;
  /** Deletes a message between others, as an operator may. */
  deleteMessage(sequence: number): void;
  /** Drops the first messages, as `max_age` does. */
  dropFirst(count: number): void;
}

export function memoryStream(): MemoryStream {
  let incarnation = 0;
  let term = 0;
  let exists = false;
  let first = 1;
  let last = 0;
  let messages: StoredMessage[] = [];
  const ids = new Map<string, number>();
  async function around<T>(call: string, effect: () => T): Promise<T> {
    await stream.before(call);
    const result = effect();
    await stream.after(call);
    return result;
  }
  const missing = () => new AgentError("CLUSTER_UNREACHABLE", "stream not found");
  const lastOf = (subject: string) => messages.findLast((message) => message.subject === subject);
  const bytes = () => messages.reduce((sum, { data }) => sum + data.length, 0);
  const stream: MemoryStream = {
    subject: "tagferry.points.test",
    before: () => {},
    after: () => {},
    maxBytes: Number.POSITIVE_INFINITY,
    get messages() {
      return messages;
    },
    delete() {
      exists = false;
      messages = [];
      ids.clear();
    },
    loseLast(count) {
      messages = messages.slice(0, messages.length - count);
      last = messages.at(-1)?.sequence ?? first - 1;
      for (const [id, sequence] of ids) if (sequence > last) ids.delete(id);
      term++;
    },
    deleteMessage(sequence) {
      messages = messages.filter((message) => message.sequence !== sequence);
    },
    dropFirst(count) {
      messages = messages.slice(count);
      first = messages[0]?.sequence ?? last + 1;
    },
    create: () =>
      around("create", () => {
        if (exists) return;
        exists = true;
        incarnation++;
        first = 1;
        last = 0;
      }),
    state: () =>
      around("state", (): StreamState | undefined =>
        exists
          ? {
              created: `stream ${incarnation}`,
              leader: `n1 ${term}`,
              firstSequence: first,
              lastSequence: last,
              messages: messages.length,
              bytes: bytes(),
              maxBytes: stream.maxBytes,
              oldestMs: 0,
              replicas: 3,
              replicasInPlace: 3,
            }
          : undefined,
      ),
    adapt: () => around("adapt", () => ({ changed: [], kept: [] })),
    publish: (subject, data, messageId, expectedLast) =>
      around("publish", () => {
        if (!exists) throw missing();
        const stored = ids.get(messageId);
        if (stored !== undefined) return stored;
        if ((lastOf(subject)?.sequence ?? 0) !== expectedLast) return undefined;
        if (bytes() + data.length > stream.maxBytes) throw new AgentError("CLUSTER_FULL", "maximum bytes exceeded");
        messages.push({ sequence: ++last, subject, data });
        ids.set(messageId, last);
        return last;
      }),
    last: (subject) =>
      around("last", () => {
        if (!exists) throw missing();
        return lastOf(subject);
      }),
    subjects: () => around("subjects", () => [...new Set(messages.map(({ subject }) => subject))]),
    next: (sequence) =>
      around("next", () => {
        if (!exists) throw missing();
        return messages.find((message) => message.sequence >= sequence);
      }),
    purgeBefore: (sequence) =>
      around("purgeBefore", () => {
        messages = messages.filter((message) => message.sequence >= sequence);
        first = Math.max(first, Math.min(sequence, last + 1));
      }),
  };
  return stream;
}
