// Everything about one tag, for its page.
import type { ConfiguredSource } from "../../config/format/config.ts";
import type { Position } from "../../config/nodes/node.ts";
import type { OtherFormat } from "../../core/commissioning.ts";
import { defined } from "../../lib/values/defined.ts";
import type { InspectedInput, Mapping } from "../../mapping/mapping.ts";
import { tagStatus } from "./snapshot.ts";
import type { SourceMonitor } from "./source-monitor.ts";
import type { SourceStatus, TagStatus } from "./status.ts";

export interface TagDetail extends Pick<InspectedInput, "rules" | "latest"> {
  readonly status: TagStatus;
  /** Points of this input, and readings that `report` suppressed, since the source was started. */
  readonly stored: number;
  readonly filtered: number;
  /** The latest raw value in other formats; see `Driver.otherFormats`. */
  readonly otherFormats?: readonly OtherFormat[];
  readonly source: Pick<SourceStatus, "name" | "type" | "url" | "state" | "error" | "remedy">;
  /** Where the tag is written. Left out if the configuration changed and no longer has it. */
  readonly place?: Position;
  /** Its entry in a template. Left out if it is written out. */
  readonly template?: Position;
}

interface DetailParts {
  readonly monitor: SourceMonitor;
  readonly mapping: Mapping;
  readonly configured: ConfiguredSource | undefined;
}

/** `tag`: index of the tag in its source. Undefined: it has no such input. */
export function tagDetail(
  { monitor, mapping, configured }: DetailParts,
  tag: number,
  input: string,
): TagDetail | undefined {
  const inspected = mapping.inspect(tag, input);
  if (!inspected) return undefined;
  const { state, rules, latest } = inspected;
  const { name, type, url, state: sourceState, error, remedy } = monitor.status();
  const { places } = configured ?? {};
  const [place, template] = [places?.at(tag), places?.template(tag)];
  const [last] = latest;
  const options = configured?.tags[tag];
  const otherFormats =
    options && last?.type === "number" ? configured.driver.otherFormats?.(options, Number(last.raw)) : undefined;
  return {
    status: tagStatus(name, state),
    stored: state.stored,
    filtered: state.filtered,
    rules,
    latest,
    ...(otherFormats && { otherFormats }),
    source: {
      name,
      type,
      state: sourceState,
      ...defined({ url, error, remedy }),
    },
    ...(place && { place }),
    ...(template && { template }),
  };
}
