// Topics that no tag wants, with a payload of each: what is needed to write the next tag.
import type { UnknownAddress } from "../../../core/source.ts";
import type { Message } from "../connection/message.ts";
import { maxTopic } from "../topics/topic-trie.ts";

/** Topics that are counted apart; others only in the metric. */
const maxTopics = 1_000;
/** Topics that are shown. */
const shown = 50;
/** Bytes of a payload that are kept. */
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

  /** Those with the most messages, at most 50. */
  top(): readonly UnknownAddress[] {
    return [...this.#topics]
      .map(([address, { count, sample }]) => ({ address, count, sample }))
      .toSorted((a, b) => b.count - a.count)
      .slice(0, shown);
  }
}

/** As text where it is one, else in hexadecimal digits. */
function sampleOf(payload: Buffer): string {
  const head = payload.subarray(0, maxSample);
  const text = head.toString("utf8");
  const cutOff = payload.length > maxSample;
  // The last character may be cut in two.
  const whole = cutOff ? text.replace(/\uFFFD+$/, "") : text;
  return /[^\P{Cc}\s]|\uFFFD/u.test(whole) ? head.toString("hex") : whole;
}
