// What the program uses of NATS JetStream: one stream and key-value buckets. `nats-connection.ts` implements it with the client.

/** A message as the stream stores it. */
export interface StreamMessage {
  /** Ascends; a sequence that was given once is not given again, unless the stream was deleted or lost data. */
  readonly sequence: number;
  readonly subject: string;
  readonly data: Uint8Array;
}

export interface StreamState {
  /** When the stream was created, as the servers wrote it: another text means another stream. */
  readonly created: string;
  /** Which server leads the stream, and since when: only where it changes can the stream lose messages at its end. */
  readonly leader: string;
  /** `lastSequence + 1` where the stream is empty. */
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly messages: number;
  readonly bytes: number;
  readonly maxBytes: number;
  readonly replicas: number;
  /** Replicas that are online and up to date, the leader included. */
  readonly replicasInPlace: number;
}

/** The stream of the points. Each call rejects with `CLUSTER_UNREACHABLE` where the servers do not answer within 5 s. */
export interface PointStream {
  /** Each node publishes under a subject of one token below this one. */
  readonly subject: string;
  /**
   * Resolves with the sequence once a quorum of the replicas stores the message, or had stored one with this ID within the
   * last 2 minutes. Undefined: the last message of the subject is not the one at `expectedLast` (0: there is none), and
   * nothing was stored. Rejects with `CLUSTER_FULL` where the stream has `maxSize`.
   */
  publish(subject: string, data: Uint8Array, messageId: string, expectedLast: number): Promise<number | undefined>;
  /** The last message of the subject, as the leader of the stream has it. */
  last(subject: string): Promise<StreamMessage | undefined>;
  /** Those that the stream has messages of. */
  subjects(): Promise<readonly string[]>;
  /** Undefined: the stream does not exist (any more). */
  state(): Promise<StreamState | undefined>;
  /** Creates the stream where it does not exist. */
  create(): Promise<void>;
  /**
   * The first message from `sequence` on. Undefined: there is none yet on the replica that answered, which may be a little
   * behind its leader.
   */
  next(sequence: number): Promise<StreamMessage | undefined>;
  /** Removes the messages before `sequence`. */
  purgeBefore(sequence: number): Promise<void>;
}

export interface KeyEntry {
  readonly key: string;
  readonly value: Uint8Array;
  /** Ascends over the whole bucket. */
  readonly revision: number;
}

/**
 * A key-value bucket. Each call rejects with `CLUSTER_UNREACHABLE` where the servers do not answer in time; a write that
 * rejects may still take effect.
 */
export interface KeyBucket {
  /** The leader of the bucket answers; one that is cut off from the others may give an older value until it notices. */
  get(key: string): Promise<KeyEntry | undefined>;
  /** Writes a key that does not exist. Resolves with its revision; undefined: the key exists. */
  create(key: string, value: Uint8Array): Promise<number | undefined>;
  /** Writes the key if its last revision is `revision`. Resolves with the new revision; undefined: it is another one. */
  update(key: string, value: Uint8Array, revision: number, timeoutMs?: number): Promise<number | undefined>;
  /** Deletes the key if its last revision is `revision`. False: it is another one. */
  delete(key: string, revision: number): Promise<boolean>;
  /** The entries whose key begins with `prefix`, which ends with a dot. */
  list(prefix: string): Promise<readonly KeyEntry[]>;
}
