// Detects tags without messages for longer than expected. A broker may grant a subscription but withhold the messages,
// and a broken device sends none. No other mechanism detects either case.
import type { EpochMicros } from "../../../core/point.ts";
import type { Reading, TagId } from "../../../core/source.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import type { MqttTag } from "../config/tag.ts";
import { tagCaptures } from "../config/tag-address.ts";

interface WatchedTag {
  readonly id: TagId;
  readonly topic: string;
  /** Milliseconds. */
  readonly expectEvery: number;
  /** Whether the tag has no captures, so that its signal is known. */
  readonly named: boolean;
  received: number;
  reported: boolean;
}

export type StaleTagWatch = NonNullable<ReturnType<typeof staleTagWatch>>;

/** Begins to watch the tags. Undefined: none of them is to be watched. `nowMs` is monotonic in all methods. */
export function staleTagWatch(tags: readonly MqttTag[], nowMs: number) {
  const watchedTags = new Map<TagId, WatchedTag>();
  /** Readings created here, which do not count as messages. */
  const own = new WeakSet<Reading>();
  for (const [index, tag] of tags.entries()) {
    const { expectEvery, topic } = tag;
    if (expectEvery === undefined) continue;
    const id = index as TagId; // a TagId is the index of its tag
    const named = tagCaptures(tag).length === 0;
    watchedTags.set(id, { id, topic: topic.text, expectEvery, named, received: nowMs, reported: false });
  }
  if (watchedTags.size === 0) return undefined;

  return {
    /** Milliseconds between checks. */
    intervalMs: Math.min(...watchedTags.values().map(({ expectEvery }) => expectEvery)) / 4,
    received(readings: readonly Reading[], nowMs: number): void {
      for (const reading of readings) {
        const watched = watchedTags.get(reading.tag);
        if (!watched || own.has(reading)) continue;
        watched.received = nowMs;
        watched.reported = false;
      }
    },
    /** Tags that became silent since the last check, each with a reading that says so if its signal is known. */
    check(nowMs: number, time: EpochMicros) {
      const silent = [...watchedTags.values()].filter(
        ({ reported, received, expectEvery }) => !reported && nowMs - received >= expectEvery,
      );
      return silent.map((watched) => {
        const { id, topic, expectEvery, named } = watched;
        watched.reported = true;
        const place = { tag: id, captures: {}, address: topic, time };
        const reading = badReading(place, `no message for ${formatDuration(expectEvery)}`);
        own.add(reading);
        return { topic, expectEvery, readings: named ? [reading] : [] };
      });
    },
  };
}
