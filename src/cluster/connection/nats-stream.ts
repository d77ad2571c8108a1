// The stream of points on NATS JetStream.
import type { StreamInfo, StreamUpdateConfig } from "@nats-io/jetstream";
import { formatDuration } from "../../lib/time/duration.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";
import type { PointStream, StreamState } from "./jetstream.ts";
import { jetstreamCode, type NatsClient, type NatsLink } from "./nats-connection.ts";
import type { ClusterOptions } from "./options.ts";

/** Messages with the same ID within this window are stored once, even if the leader changes. */
const duplicateWindowMs = 120_000;
const streamNotFound = 10_059;
const wrongLastSequence: ReadonlySet<number | undefined> = new Set([10_071, 10_164]);
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
        try {
          const expect = { streamName, lastSubjectSequence: expectedLast };
          return (await jetstream.publish(nodeSubject, data, { msgID: messageId, expect })).seq;
        } catch (error) {
          if (wrongLastSequence.has(jetstreamCode(error))) return undefined;
          throw error;
        }
      }),
    last: (nodeSubject) =>
      onStream("last", async ({ manager }) => {
        const found = await manager.streams.getMessage(streamName, { last_by_subj: nodeSubject });
        return found ? { sequence: found.seq, subject: found.subject, data: found.data } : undefined;
      }),
    subjects: () =>
      onStream("subjects", async ({ manager }) => {
        const { state } = await manager.streams.info(streamName, { subjects_filter: ">" });
        return Object.keys(state.subjects ?? {});
      }),
    state: () =>
      onStream("state", async ({ manager }) => {
        try {
          const info = await manager.streams.info(streamName);
          // Without a leader each replica answers, also one that is behind.
          if (info.cluster && !info.cluster.leader) throw new Error("the stream has no leader");
          return stateOf(info);
        } catch (error) {
          if (jetstreamCode(error) === streamNotFound) return undefined;
          throw error;
        }
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
        const found = near?.seq === sequence ? near : await manager.streams.getMessage(streamName, wanted);
        return found ? { sequence: found.seq, subject: found.subject, data: found.data } : undefined;
      }),
    purgeBefore: (sequence) =>
      onStream("purge", async ({ manager }) => {
        await manager.streams.purge(streamName, { seq: sequence });
      }),
  };
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
