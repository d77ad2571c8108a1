// Warns where an Input ID may depend on the place of an element in a list: another element may stand there in the next message.
import type { ConfigWarning } from "../../../core/source.ts";
import type { MqttTag } from "./tag.ts";
import { tagAddress } from "./tag-address.ts";

const remedy =
  "use {key} where [*] finds the members of an object, or a field that names the element: capture: { id: ... }; {i1} says that the order never changes";

/** `names`: those that fill the Input ID. */
export function positionRemarks(tag: MqttTag, names: readonly string[]): readonly ConfigWarning[] {
  const { depth, batchDepth, captureNames } = tagAddress(tag);
  const remarks: ConfigWarning[] = [];
  const warn = (message: string, hint = remedy) => remarks.push({ field: "input", message, hint });
  for (let k = 1; k <= batchDepth; k++)
    if (names.includes(`i${k}`))
      warn(
        `has {i${k}} in it: the position of an element of a batch, so an Input ID changes with the batch`,
        "use {key} where [*] finds the members of an object, or a field that names the element: capture: { id: ... }",
      );
  if (!names.includes("i")) return remarks;
  const isNamed = captureNames.some((name) => names.includes(name));
  if (batchDepth === depth && depth > 0 && !isNamed)
    warn(
      "has {i} in it, which is empty for the elements of a list with times of their own: they are a batch, and their values are not stored",
    );
  else if (recordLevels(tag).some((level) => level > batchDepth))
    warn(
      "has {i} in it: for records in a list that is their position, and another record may stand there in the next message",
    );
  return remarks;
}

/** Levels of `value` whose elements have members that the path leads to: records, if they stand in a list. */
function recordLevels({ value }: MqttTag): readonly number[] {
  let level = 0;
  return (value?.steps ?? []).flatMap((step, i, steps) => {
    if (typeof step !== "object" || step.kind === "where") return [];
    level++;
    const next = steps[i + 1];
    return typeof next === "string" || (typeof next === "object" && next.kind === "leaves") ? [level] : [];
  });
}
