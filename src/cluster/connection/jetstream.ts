// The parts of NATS JetStream that the program uses: one stream, key-value buckets and their keys, messages.
import type { z } from "zod";
import { attempt } from "../../lib/flow/attempt.ts";

export interface StreamMessage {
  /** Ascends. A sequence is not reused unless the stream was deleted or lost data. */
  readonly sequence: number;
  readonly data: Uint8Array;
}

export interface StreamState {
  /** Creation time in the servers' text form. A different text means a different stream. */
  readonly created: string;
  /** The leading server and the start of its leadership. The stream can lose messages at its end only if it changes. */
  readonly leader: string;
  /** `lastSequence + 1` if the stream is empty. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly messages: number;
  readonly bytes: number;
  readonly maxBytes: number;
  /** Age of the oldest message by the clocks of the servers; 0 if the stream is empty. */
  readonly oldestMs: number;
  /** Wall clock of the server that answered, in milliseconds since 1970. Undefined: it did not say. */
  readonly answeredAt?: number | undefined;
  readonly replicas: number;
  /** Replicas that are online and up to date, including the leader. */
  readonly replicasInPlace: number;
}

/** How the limits of a stream that exists follow the configuration; texts for the operator. */
export interface StreamAdaptation {
  readonly changed: readonly string[];
  /** Limits that stay as they are for now: with those of the configuration, the servers would drop messages. */
  readonly kept: readonly string[];
}

/** The stream of points. Each call rejects with `CLUSTER_UNREACHABLE` if the servers do not answer in time. */
export interface PointStream {
  /** Each node publishes under a subject with one more token. */
  readonly subject: string;
  /**
   * Resolves with the sequence once a quorum has stored the message, or if it stored one with this ID within the last 2
   * minutes. Undefined: the last message of the subject is not at `expectedLast` (0: none), and nothing was stored.
   * Rejects with `CLUSTER_FULL` if the stream has reached `maxSize`.
   */
  publish(subject: string, data: Uint8Array, messageId: string, expectedLast: number): Promise<number | undefined>;
  /** The last message of the subject, read from the stream's leader. */
  last(subject: string): Promise<StreamMessage | undefined>;
  subjects(): Promise<readonly string[]>;
  /** Undefined: the stream does not exist. */
  state(): Promise<StreamState | undefined>;
  create(): Promise<void>;
  /**
   * Gives the stream the configured `replicas`, `maxSize` and `maxAge`, as far as no message is dropped by it, and what
   * `create` gives it: another program may have created it.
   */
  adapt(): Promise<StreamAdaptation>;
  /** The first message from `sequence` on. Undefined: the leader has none. */
  next(sequence: number): Promise<StreamMessage | undefined>;
  purgeBefore(sequence: number): Promise<void>;
}

export interface KeyEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Ascends over the whole bucket. */
  readonly revision: number;
}

/** The content of an entry or message. Undefined: there is none, or it is unknown, for example of another version. */
export function parsed<T>(schema: z.ZodType<T>, value: Uint8Array | undefined): T | undefined {
  return value && attempt(() => schema.safeParse(JSON.parse(Buffer.from(value).toString("utf8"))).data);
}

/** Calls reject with `CLUSTER_UNREACHABLE` if no answer comes in time. A rejected write may still take effect. */
export interface KeyBucket {
  /** Answered by the bucket's leader. A leader that is partitioned may return an older value until it notices. */
  get(key: string): Promise<KeyEntry | undefined>;
  /** Writes a new key. Resolves with its revision, or undefined if the key exists. */
  create(key: string, value: Uint8Array): Promise<number | undefined>;
  /** Writes the key if its last revision is `revision`. Resolves with the new one, or undefined on a mismatch. */
  update(key: string, value: Uint8Array, revision: number, timeoutMs?: number): Promise<number | undefined>;
  /** Deletes the key if its last revision is `revision`. False: it is not. */
  delete(key: string, revision: number): Promise<boolean>;
  /** The keys that begin with `prefix`, which ends with a dot: also keys that were deleted. */
  keys(prefix: string): Promise<readonly string[]>;
  /** The entries whose keys begin with `prefix`, which ends with a dot. */
  list(prefix: string): Promise<readonly KeyEntry[]>;
}

/** Messages to all agents of the integration. They are not stored: what does not arrive at once is lost. */
export interface Broadcast {
  /** Has no effect without a connection. */
  send(data: Uint8Array): void;
  /** Calls `take` with each message, also with those of this agent, until `signal` aborts, then resolves. */
  listen(take: (data: Uint8Array) => void, signal: AbortSignal): Promise<void>;
}

/** Requests from any process to the agent that answers them. */
export interface RequestChannel {
  /** Rejects with `CLUSTER_UNREACHABLE` if no agent answers in time. */
  ask(data: Uint8Array): Promise<Uint8Array>;
  /** Answers requests until `signal` aborts, then resolves. A request whose `reply` rejects gets no answer. */
  answer(reply: (data: Uint8Array) => Promise<Uint8Array>, signal: AbortSignal): Promise<void>;
}

const plain = /^[A-Za-z0-9_-]$/;

/**
 * Encodes the name of an agent, source or file as one token of a key or subject; dots and others are escaped. Different
 * names give different tokens: `north.gw1` → `north=2egw1`.
 */
export function keyToken(name: string): string {
  const bytes = [...Buffer.from(name, "utf8")];
  return bytes
    .map((byte) => {
      const sign = String.fromCodePoint(byte);
      return plain.test(sign) ? sign : `=${byte.toString(16).padStart(2, "0")}`;
    })
    .join("");
}

/** The name that `keyToken` has encoded. */
export function tokenName(token: string): string {
  return decodeURIComponent(token.replaceAll("=", "%"));
}
