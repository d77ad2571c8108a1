// Key-value buckets on NATS JetStream.
import type { KV, KvEntry } from "@nats-io/kv";
import type { KeyBucket, KeyEntry } from "./jetstream.ts";
import { answerWithinMs, jetstreamCode, type NatsClient, type NatsLink } from "./nats-connection.ts";

interface KeyBucketOptions {
  readonly name: string;
  readonly replicas: number;
  /** Entries not written for this long expire by the clock of the bucket's leader. Undefined: never. */
  readonly ttlMs?: number;
}

/** Error codes for a revision mismatch; the second one does not say which. */
const wrongRevision: ReadonlySet<number | undefined> = new Set([10_071, 10_164]);

/** Reads of a list that wait for answers. The servers drop all that wait, of all agents, when these are 10,000. */
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
        const isKept =
          wrongRevision.has(jetstreamCode(error)) || (error instanceof Error && error.name === "TimeoutError");
        if (!isOpen || !isKept) opened = undefined;
        throw error;
      }
    });

  const conditional = <T>(what: string, call: (bucket: KV) => Promise<T>) =>
    use(what, async (bucket) => {
      try {
        return await call(bucket);
      } catch (error) {
        if (wrongRevision.has(jetstreamCode(error))) return undefined;
        throw error;
      }
    });

  async function keysOf({ manager }: NatsClient, prefix: string): Promise<string[]> {
    // Without a consumer, as `history` has: those whose deletion is lost remain for minutes, up to the servers' limit.
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
