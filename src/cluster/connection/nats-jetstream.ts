// The stream of points and the key-value buckets on NATS JetStream.
import type { StoredMsg, StreamInfo, StreamUpdateConfig } from "@nats-io/jetstream";
import type { KV, KvEntry } from "@nats-io/kv";
import { formatDuration } from "../../lib/time/duration.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import type { KeyBucket, KeyEntry, PointStream, StreamMessage, StreamState } from "./jetstream.ts";
import { answerWithinMs, jetstreamCode, type NatsClient, type NatsLink } from "./nats-connection.ts";
import type { ClusterOptions } from "./options.ts";

/** Messages with the same ID within this window are stored once, even if the leader changes. */
const duplicateWindowMs = 120_000;
const streamNotFound = [10_059];
/** Another write was the last one of the subject or key. The second code does not say which. */
const notTheLast = [10_071, 10_164];
const nanosPerMs = 1_000_000;

/** `integration` is part of its name, so that integrations share no points. The caller owns `link`. */
export function natsStream(
  link: Pick<NatsLink, "use">,
  options: Pick<ClusterOptions, "replicas" | "maxSize" | "maxAge">,
  integration: string,
): PointStream {
  const streamName = `tagferry-points-${integration}`;
  const subject = `tagferry.points.${integration}`;
  /** Settings that publishing and reading need, also of a stream that an administrator has made. The last three remove limits. */
  const needed = {
    subjects: [`${subject}.>`],
    discard: "new",
    allow_direct: true,
    max_msgs: -1,
    max_msgs_per_subject: -1,
    max_msg_size: -1,
  } satisfies Partial<StreamUpdateConfig>;
  const onStream = <T>(what: string, call: (client: NatsClient) => Promise<T>) =>
    link.use(`stream ${streamName}: ${what}`, call);
  return {
    subject,
    publish: (nodeSubject, data, messageId, expectedLast) =>
      onStream("publish", async ({ jetstream }) => {
        const expect = { streamName, lastSubjectSequence: expectedLast };
        const stored = jetstream.publish(nodeSubject, data, { msgID: messageId, expect });
        return (await unlessRefused(stored, notTheLast))?.seq;
      }),
    last: (nodeSubject) =>
      onStream("last", async ({ manager }) =>
        messageOf(await manager.streams.getMessage(streamName, { last_by_subj: nodeSubject })),
      ),
    subjects: () =>
      onStream("subjects", async ({ manager }) => {
        const { state } = await manager.streams.info(streamName, { subjects_filter: ">" });
        return Object.keys(state.subjects ?? {});
      }),
    state: () =>
      onStream("state", async ({ manager }) => {
        const info = await unlessRefused(manager.streams.info(streamName), streamNotFound);
        // Without a leader each replica answers, also one that is behind.
        if (info?.cluster && !info.cluster.leader) throw new Error("the stream has no leader");
        return info && stateOf(info);
      }),
    create: () =>
      onStream("create", async ({ manager }) => {
        await manager.streams.add({
          ...needed,
          name: streamName,
          storage: "file",
          retention: "limits",
          num_replicas: options.replicas,
          max_bytes: options.maxSize,
          max_age: options.maxAge * nanosPerMs,
          duplicate_window: Math.min(duplicateWindowMs, options.maxAge) * nanosPerMs,
        });
      }),
    adapt: () =>
      onStream("adapt", async ({ manager }) => {
        const info = await manager.streams.info(streamName);
        const { num_replicas: replicas, max_bytes: maxSize, max_age: nanos } = info.config;
        const maxAge = nanos / nanosPerMs;
        const { bytes, oldestMs } = stateOf(info);
        const next = {
          replicas: options.replicas,
          maxSize: bytes < options.maxSize ? options.maxSize : maxSize,
          // Messages age while the stream is changed.
          maxAge: 2 * oldestMs < options.maxAge ? options.maxAge : maxAge,
        };
        const text = (of: { readonly replicas: number; readonly maxSize: number; readonly maxAge: number }) => [
          `replicas ${of.replicas}`,
          `maxSize ${formatByteSize(of.maxSize)}`,
          `maxAge ${formatDuration(of.maxAge)}`,
        ];
        // Servers refuse to change a work queue, which keeps what no consumer takes, as `limits` does.
        const retention = info.config.retention === "workqueue" ? {} : { retention: "limits" as const };
        const changed = Object.entries({ ...needed, ...retention })
          .filter(([key, value]) => String(Reflect.get(info.config, key)) !== String(value))
          .map(([key, value]) => `${key} ${String(value)}`);
        changed.push(...text(next).filter((line, i) => line !== text({ replicas, maxSize, maxAge })[i]));
        if (changed.length > 0)
          await manager.streams.update(streamName, {
            ...needed,
            ...retention,
            num_replicas: next.replicas,
            max_bytes: next.maxSize,
            max_age: next.maxAge * nanosPerMs,
            duplicate_window: Math.min(duplicateWindowMs, next.maxAge) * nanosPerMs,
          });
        return { changed, kept: text(next).filter((line, i) => line !== text(options)[i]) };
      }),
    next: (sequence) =>
      onStream("read", async ({ manager }) => {
        const wanted = { seq: sequence, next_by_subj: `${subject}.>` };
        const near = await manager.direct.getMessage(streamName, wanted);
        // Servers prefer their own replica, so one that catches up would answer each call: the leader decides.
        return messageOf(near?.seq === sequence ? near : await manager.streams.getMessage(streamName, wanted));
      }),
    purgeBefore: (sequence) =>
      onStream("purge", async ({ manager }) => {
        await manager.streams.purge(streamName, { seq: sequence });
      }),
  };
}

/** Undefined if the servers refuse `call` with one of these codes. */
async function unlessRefused<T>(call: Promise<T>, codes: readonly number[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (codes.includes(jetstreamCode(error) ?? 0)) return undefined;
    throw error;
  }
}

function messageOf(found: StoredMsg | null): StreamMessage | undefined {
  return found ? { sequence: found.seq, data: found.data } : undefined;
}

function stateOf({ created, state, config, cluster, ts }: StreamInfo): StreamState {
  // `ts` is the time of the answer.
  const ageMs = ts === undefined ? 0 : Date.parse(ts) - Date.parse(state.first_ts);
  const followers = cluster?.replicas ?? [];
  return {
    created: String(created),
    leader: `${cluster?.leader ?? ""} ${cluster?.leader_since ?? ""}`,
    firstSequence: state.first_seq,
    lastSequence: state.last_seq,
    messages: state.messages,
    bytes: state.bytes,
    maxBytes: config.max_bytes,
    oldestMs: state.messages === 0 ? 0 : Math.max(0, ageMs),
    answeredAt: ts === undefined ? undefined : Date.parse(ts),
    replicas: config.num_replicas,
    replicasInPlace: 1 + followers.filter(({ offline, current }) => current && offline !== true).length,
  };
}

interface KeyBucketOptions {
  readonly name: string;
  readonly replicas: number;
  /** Entries not written for this long expire by the clock of the bucket's leader. Undefined: never. */
  readonly ttlMs?: number;
}

/** Maximum concurrent reads of a list. The servers drop all pending reads when those of all agents reach 10,000. */
const readsAtOnce = 50;

/** Creates the bucket on the first call, and again if the servers have lost it. The caller owns `link`. */
export function natsBucket(link: NatsLink, { name, replicas, ttlMs }: KeyBucketOptions): KeyBucket {
  let opened: { readonly client: NatsClient; readonly bucket: Promise<KV> } | undefined;

  function bucketOf(client: NatsClient): Promise<KV> {
    if (opened?.client !== client)
      opened = {
        client,
        // Only the bucket's leader answers reads; replicas may lag.
        bucket: client.buckets.create(name, {
          replicas,
          history: 1,
          allow_direct: false,
          ...(ttlMs !== undefined && { ttl: ttlMs }),
        }),
      };
    return opened.bucket;
  }

  const use = <T>(what: string, call: (bucket: KV, client: NatsClient) => Promise<T>) =>
    link.use(`bucket ${name}: ${what}`, async (client) => {
      let isOpen = false;
      try {
        const bucket = await bucketOf(client);
        isOpen = true;
        return await call(bucket, client);
      } catch (error) {
        // Opening again asks the leader of all streams, which a renewal of a lease must not wait for.
        if (!isOpen || !(error instanceof Error && error.name === "TimeoutError")) opened = undefined;
        throw error;
      }
    });

  const conditional = <T>(what: string, call: (bucket: KV) => Promise<T>) =>
    use(what, (bucket) => unlessRefused(call(bucket), notTheLast));

  async function keysOf({ manager }: NatsClient, prefix: string): Promise<string[]> {
    // `history` would create a consumer. If its deletion is lost, it stays for minutes, and the servers limit their number.
    const { state } = await manager.streams.info(`KV_${name}`, { subjects_filter: `$KV.${name}.${prefix}>` });
    return Object.keys(state.subjects ?? {}).map((subject) => subject.slice(`$KV.${name}.`.length));
  }

  return {
    get: (key) =>
      use(`get ${key}`, async (bucket) => {
        const entry = await bucket.get(key);
        return entry?.operation === "PUT" ? entryOf(entry) : undefined;
      }),
    create: (key, value) => conditional(`create ${key}`, (bucket) => bucket.create(key, value)),
    update: (key, value, revision, timeoutMs = answerWithinMs) =>
      conditional(`update ${key}`, (bucket) => bucket.update(key, value, revision, timeoutMs)),
    delete: async (key, revision) =>
      (await conditional(`delete ${key}`, async (bucket) => {
        await bucket.delete(key, { previousSeq: revision });
        return true;
      })) ?? false,
    keys: (prefix) => use(`keys ${prefix}`, (_, client) => keysOf(client, prefix)),
    list: (prefix) =>
      use(`list ${prefix}`, async (bucket, client) => {
        const keys = await keysOf(client, prefix);
        const entries: (KvEntry | null)[] = [];
        for (let i = 0; i < keys.length; i += readsAtOnce)
          entries.push(...(await Promise.all(keys.slice(i, i + readsAtOnce).map((key) => bucket.get(key)))));
        return entries.flatMap((entry) => (entry?.operation === "PUT" ? [entryOf(entry)] : []));
      }),
  };
}

function entryOf({ key, value, revision }: KvEntry): KeyEntry {
  return { key, value, revision };
}
