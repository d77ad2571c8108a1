// Reads what a server has recorded of a variable: HistoryRead of raw values, page by page (OPC 10000-11, 6.4.3).
import { AgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Link } from "./link.ts";
import type { DataValueLike } from "./reading.ts";
import type { NodeId } from "./services.ts";
import type { Ua } from "./stack.ts";

/** Values in one answer: small enough that live data does not wait behind it. */
const valuesPerPage = 1_000;

/**
 * Raw values after `from` and before `to`, ascending, a page at a time. Rejects with `SOURCE_*`; the status stands in
 * the message: `BadHistoryOperationUnsupported` where the server keeps none.
 */
export async function* readHistory(
  ua: Ua,
  link: Link,
  nodeId: NodeId,
  from: EpochMicros,
  to: EpochMicros,
  signal: AbortSignal,
): AsyncGenerator<readonly DataValueLike[]> {
  const page = async (
    start: EpochMicros,
    continuationPoint: Buffer | undefined,
    releaseContinuationPoints: boolean,
  ) => {
    const request = new ua.HistoryReadRequest({
      historyReadDetails: new ua.ReadRawModifiedDetails({
        isReadModified: false,
        // Whole milliseconds around the gap: what lies at its edges is cut off afterwards, to the microsecond.
        startTime: new Date(Math.floor(start / 1_000)),
        endTime: new Date(Math.ceil(to / 1_000)),
        numValuesPerNode: valuesPerPage,
        // The stack would ask for bounds: values that were never measured.
        returnBounds: false,
      }),
      timestampsToReturn: ua.TimestampsToReturn.Both,
      releaseContinuationPoints,
      nodesToRead: [{ nodeId, ...(continuationPoint && { continuationPoint }) }],
    });
    const { results } = await link.call(request, ua.HistoryReadResponse, signal);
    const result = results?.[0];
    if (!result?.statusCode.isGoodish())
      throw new AgentError("SOURCE_PROTOCOL", `HistoryRead: ${result?.statusCode.name ?? "no result"}`);
    return result;
  };
  let point: Buffer | undefined;
  let start = from;
  try {
    for (;;) {
      const result = await page(start, point, false);
      const values = result.historyData instanceof ua.HistoryData ? (result.historyData.dataValues ?? []) : [];
      yield values;
      point = result.continuationPoint?.length ? result.continuationPoint : undefined;
      if (point) continue;
      // Some servers stop at the number they were asked for without saying that there is more.
      const last = values.at(-1)?.sourceTimestamp?.getTime() ?? 0;
      if (values.length < valuesPerPage || last * 1_000 <= start) return;
      start = epochMicros(last * 1_000);
    }
  } finally {
    // Servers have few of them.
    if (point && !signal.aborted && !link.lost.aborted) await page(start, point, true).catch(() => {});
  }
}
