// Tags that have said nothing for longer than they should. A broker may grant a subscription and withhold the messages,
// and a device that is gone sends none: neither can be told from a quiet plant but by this.
import type { EpochMicros } from "../../../core/point.ts";
import type { Reading, TagId } from "../../../core/source.ts";
import { formatDuration } from "../../../lib/duration.ts";
import type { MqttTag } from "../config/tag.ts";
import { tagCaptures } from "../config/tag-address.ts";
import { badReading } from "../connection/message.ts";

interface Watched {
  readonly id: TagId;
  readonly topic: string;
  /** Milliseconds. */
  readonly expectEvery: number;
  /** Whether it is known which signal the tag is: nothing is captured. */
  readonly named: boolean;
  heard: number;
  told: boolean;
}

/** Watches the tags that say how often something is expected of them. */
export class StaleTagWatch {
  readonly #watched = new Map<TagId, Watched>();
  /** Readings of our own making, which are no sign of life. */
  readonly #own = new WeakSet<Reading>();

  /** `nowMs`, here and below, is monotonic. */
  constructor(tags: readonly MqttTag[], nowMs: number) {
    for (const [index, tag] of tags.entries()) {
      const { expectEvery, topic } = tag;
      if (expectEvery === undefined) continue;
      const id = index as TagId; // a TagId is the index of its tag
      const named = tagCaptures(tag).length === 0;
      this.#watched.set(id, { id, topic: topic.text, expectEvery, named, heard: nowMs, told: false });
    }
  }

  /** Milliseconds between two looks that are close enough; undefined: there is nothing to watch. */
  get intervalMs(): number | undefined {
    if (this.#watched.size === 0) return undefined;
    return Math.min(...[...this.#watched.values()].map(({ expectEvery }) => expectEvery)) / 4;
  }

  heard(readings: readonly Reading[], nowMs: number): void {
    if (this.#watched.size === 0) return;
    for (const reading of readings) {
      const watched = this.#watched.get(reading.tag);
      if (!watched || this.#own.has(reading)) continue;
      watched.heard = nowMs;
      watched.told = false;
    }
  }

  /** Tags that have fallen silent since the last look, by topic. */
  look(nowMs: number): readonly SilentTag[] {
    const silent: SilentTag[] = [];
    for (const watched of this.#watched.values()) {
      if (watched.told || nowMs - watched.heard < watched.expectEvery) continue;
      watched.told = true;
      silent.push(watched);
    }
    return silent;
  }

  /** What a silent tag shows: no value, and for how long there should have been one. */
  reading({ id, topic, expectEvery }: SilentTag, time: EpochMicros): Reading {
    const place = { tag: id, captures: {}, address: topic, time };
    const reading = badReading(place, `no message for ${formatDuration(expectEvery)}`);
    this.#own.add(reading);
    return reading;
  }
}

export type SilentTag = Pick<Watched, "id" | "topic" | "expectEvery" | "named">;
