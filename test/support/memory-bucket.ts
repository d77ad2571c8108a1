// A key-value bucket in memory with the behaviour of NATS: revisions ascend over the bucket, and conditional writes
// check them.
import type { Broadcast, KeyBucket, KeyEntry } from "../../src/cluster/connection/jetstream.ts";
import { AgentError } from "../../src/core/errors.ts";

export interface MemoryBucket extends KeyBucket {
  /** Each call awaits it, with its name; it may reject. The write takes effect after `before` and ahead of `after`. */
  before: (call: string) => Promise<void> | void;
  after: (call: string) => Promise<void> | void;
  /** Removes everything, as servers that lose their data do. Revisions start again. */
  wipe(): void;
  /** Removes a key, as the time to live of the bucket does. */
  expire(key: string): void;
}

export function unreachable(): AgentError {
  return new AgentError("CLUSTER_UNREACHABLE", "no answer within 5000 ms");
}

export function memoryBucket(): MemoryBucket {
  const entries = new Map<string, KeyEntry>();
  let last = 0;
  async function around<T>(call: string, effect: () => T): Promise<T> {
    await bucket.before(call);
    const result = effect();
    await bucket.after(call);
    return result;
  }
  const write = (key: string, value: Uint8Array) => {
    entries.set(key, { key, value, revision: ++last });
    return last;
  };
  const bucket: MemoryBucket = {
    before: () => {},
    after: () => {},
    wipe() {
      entries.clear();
      last = 0;
    },
    expire: (key) => void entries.delete(key),
    get: (key) => around("get", () => entries.get(key)),
    create: (key, value) => around("create", () => (entries.has(key) ? undefined : write(key, value))),
    update: (key, value, revision) =>
      around("update", () => (entries.get(key)?.revision === revision ? write(key, value) : undefined)),
    delete: (key, revision) =>
      around("delete", () => entries.get(key)?.revision === revision && ++last > 0 && entries.delete(key)),
    keys: (prefix) => around("keys", () => [...entries.keys()].filter((key) => key.startsWith(prefix))),
    list: (prefix) => around("list", () => [...entries.values()].filter(({ key }) => key.startsWith(prefix))),
  };
  return bucket;
}

/** The bucket as one agent reaches it. While `isCut`, no call takes effect. */
export function linkTo(bucket: KeyBucket, isCut: () => boolean): KeyBucket {
  const reached = async <T>(call: () => Promise<T>): Promise<T> => {
    if (isCut()) throw unreachable();
    return await call();
  };
  return {
    get: (...given) => reached(() => bucket.get(...given)),
    create: (...given) => reached(() => bucket.create(...given)),
    update: (...given) => reached(() => bucket.update(...given)),
    delete: (...given) => reached(() => bucket.delete(...given)),
    keys: (...given) => reached(() => bucket.keys(...given)),
    list: (...given) => reached(() => bucket.list(...given)),
  };
}

export interface MemoryBroadcast {
  /** The messages as one agent sends and receives them. While `isCut`, none passes. */
  linkTo(isCut?: () => boolean): Broadcast;
}

export function memoryBroadcast(): MemoryBroadcast {
  const listeners = new Set<(data: Uint8Array) => void>();
  return {
    linkTo: (isCut = () => false) => ({
      send(data) {
        if (!isCut()) for (const take of listeners) take(data);
      },
      listen: (take, signal) =>
        new Promise((resolve) => {
          const listener = (data: Uint8Array) => {
            if (!isCut()) take(data);
          };
          listeners.add(listener);
          signal.addEventListener("abort", () => {
            listeners.delete(listener);
            resolve();
          });
        }),
    }),
  };
}
