// Counters of received messages, published as metrics once per event loop turn, and a list of unmatched topics with
// samples.
import type { Metrics } from "../../../core/runtime.ts";
import type { TagId, UnknownAddress } from "../../../core/source.ts";
import { longProperties, type Message } from "../connection/packet-reader.ts";
import { type TimeFault, timeFaults } from "../decoders/payload-time.ts";
import { maxTopic } from "../topics/topic-trie.ts";

/** Counters that message readers increment. The table below describes each one. */
export class MessageCounts {
  received = 0;
  acknowledged = 0;
  unmatched = 0;
  malformed = 0;
  oversized = 0;
  empty = 0;
  missing = 0;
  stale = 0;
  texts = 0;
  unnamed = 0;
  unknownMetrics = 0;
  unsupported = 0;
  rebirths = 0;
  readonly untimed: Record<TimeFault["kind"], number> = { missing: 0, unreadable: 0, past: 0, future: 0 };
  /** The last such message: its topic with the fault or the remedy. */
  lastMalformed: string | undefined;
  lastOversized: string | undefined;
  lastUnnamed: string | undefined;
  lastTimeFault: string | undefined;
  readonly #hasValue: true[] = [];
  /** By tag that has had no value yet: what its last message did not contain. */
  readonly #lacking = new Map<TagId, string>();

  noteValue(tag: TagId): void {
    this.#hasValue[tag] = true;
  }

  noteLacking(tag: TagId, topic: string, path: string): void {
    if (!this.#hasValue[tag]) this.#lacking.set(tag, `${topic}: the payload has nothing at ${path}`);
  }

  noteOversized(topic: string, bytes: number, maxPayload: number): void {
    this.oversized++;
    const why = bytes > maxPayload ? `${bytes} bytes; maxPayload is ${maxPayload}: raise it, or` : `${longProperties}:`;
    this.lastOversized = `${topic}: ${why} narrow the topic of the tag`;
  }

  noteUnnamed(topic: string, path: string): void {
    this.unnamed++;
    this.lastUnnamed = `${topic}: only its position in a list distinguishes a value at ${path}, and that changes; name it by a field, capture: { id: ... }, by {key} if [*] finds members of an object, or by {i1} if the order never changes`;
  }

  noteTimeFault(fault: TimeFault, topic: string): void {
    this.untimed[fault.kind]++;
    this.lastTimeFault = `${topic}: ${fault.text}`;
  }

  get details(): Readonly<Record<string, string>> {
    const { lastMalformed, lastOversized, lastUnnamed, lastTimeFault: lastUnusableTime } = this;
    const lastMissing = [...this.#lacking].find(([tag]) => !this.#hasValue[tag])?.[1];
    const texts = Object.entries({ lastMalformed, lastMissing, lastOversized, lastUnnamed, lastUnusableTime });
    return Object.fromEntries(texts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text]])));
  }

  /** Adds the counts since the last call to the metrics of `source`. */
  publish(metrics: Metrics, source: string): void {
    for (const field of fields) {
      if (this[field] === 0) continue;
      const [name, help] = counters[field];
      metrics.counter({ name, help, labels }).add(this[field], { source });
      this[field] = 0;
    }
    for (const reason of timeFaults) {
      if (this.untimed[reason] === 0) continue;
      metrics.counter(untimedValues).add(this.untimed[reason], { source, reason });
      this.untimed[reason] = 0;
    }
  }
}

const labels = ["source"] as const;
const counters = {
  received: ["source_mqtt_messages_total", "Messages received"],
  acknowledged: ["source_mqtt_acknowledged_messages_total", "Messages acknowledged after they were on disk"],
  unmatched: ["source_mqtt_unmatched_messages_total", "Messages of topics that no tag wants"],
  malformed: ["source_mqtt_malformed_messages_total", "Messages whose payload could not be decoded, or only in part"],
  oversized: [
    "source_mqtt_oversized_messages_total",
    "Messages acknowledged without their payload because it is larger than maxPayload",
  ],
  empty: ["source_mqtt_empty_messages_total", "Messages without a payload"],
  missing: ["source_mqtt_missing_values_total", "Values that a payload did not contain"],
  stale: ["source_mqtt_stale_values_total", "Values of retained messages without a time of their own, not stored"],
  texts: ["source_mqtt_skipped_texts_total", "Texts under `.**` that are not numbers, not stored"],
  unnamed: ["source_mqtt_unnamed_values_total", "Values that only their position in a list distinguishes, not stored"],
  unknownMetrics: [
    "source_mqtt_unknown_metric_values_total",
    "Values of Sparkplug metrics that no birth has introduced, not stored",
  ],
  unsupported: [
    "source_mqtt_unsupported_values_total",
    "Values of Sparkplug metrics of types without a number, as files and data sets, not stored",
  ],
  rebirths: ["source_mqtt_rebirth_requests_total", "Births asked for from Sparkplug edge nodes"],
} as const;
const fields = Object.keys(counters) as (keyof typeof counters)[]; // its own keys

const untimedValues = {
  name: "source_mqtt_untimed_values_total",
  help: "Values whose own time is missing or invalid: stored with the time of arrival, or not at all if retained or unusable: drop says so; what is ahead is stored as it is while the clock of this machine is not trusted",
  labels: ["source", "reason"],
} as const;

const maxTopics = 1_000;
const shown = 50;
/** Bytes of a payload that are stored. */
const maxSample = 200;

export class UnknownTopics {
  readonly #topics = new Map<string, { count: number; sample: string }>();

  note({ topic, payload, skippedBytes }: Pick<Message, "topic" | "payload" | "skippedBytes">): void {
    const known = this.#topics.get(topic);
    if (known) known.count++;
    else if (this.#topics.size < maxTopics && topic.length <= maxTopic)
      this.#topics.set(topic, {
        count: 1,
        sample: skippedBytes === undefined ? sampleOf(payload) : `(${skippedBytes} bytes, skipped)`,
      });
  }

  /** The topics with the most messages, at most 50. */
  top(): readonly UnknownAddress[] {
    return [...this.#topics]
      .map(([address, { count, sample }]) => ({ address, count, sample }))
      .toSorted((a, b) => b.count - a.count)
      .slice(0, shown);
  }
}

/** The payload as text, or in hexadecimal digits if it is binary. */
function sampleOf(payload: Buffer): string {
  const head = payload.subarray(0, maxSample);
  const text = head.toString("utf8");
  const cutOff = payload.length > maxSample;
  // The last character may be truncated.
  const whole = cutOff ? text.replace(/\uFFFD+$/, "") : text;
  return /[^\P{Cc}\s]|\uFFFD/u.test(whole) ? head.toString("hex") : whole;
}
