// What a refused subscription means for the tags that need it.
import type { Runtime } from "../../../core/runtime.ts";
import type { Reading, TagId } from "../../../core/source.ts";
import type { MqttTag } from "../config/tag.ts";
import { tagCaptures } from "../config/tag-address.ts";
import { coverage } from "./filter-cover.ts";
import { describeReason } from "./reason-code.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** A refused filter shows under its tags. Tags whose template captures have no names yet that it could show under. */
export function refusals(
  tags: readonly MqttTag[],
  subscriptions: Subscriptions,
  { clock }: Pick<Runtime, "clock">,
): readonly Reading[] {
  const time = clock.now();
  const arrives = coverage(subscriptions.granted);
  return tags.flatMap((tag, index): Reading[] => {
    const { topic } = tag;
    if (tagCaptures(tag).length > 0 || arrives(topic.filter)) return [];
    const code = subscriptions.refused.get(topic.filter) ?? 0x80;
    return [
      {
        tag: index as TagId, // a TagId is the index of its tag
        captures: {},
        address: topic.text,
        wholeTag: true,
        value: undefined,
        time,
        clock: "agent",
        quality: "bad",
        reason: `the broker refused the subscription: ${describeReason(code)}`,
        historical: false,
      },
    ];
  });
}
