// For size and speed, agent and service write and read integration.insert byte by byte. Both must agree with this
// schema, which is too slow for 1.5 million values outside of tests.
import { expect } from "vitest";
import { z } from "zod";
import { isInputId } from "../../src/core/point.ts";
import { atOnce } from "../../src/lib/flow/in-slices.ts";
import { checkFrame } from "../../src/service/call/check-frame.ts";
import { readInsert } from "../../src/service/call/insert-reader.ts";
import { Faults } from "../../src/service/call/rpc-fault.ts";
import type { BlockColumns } from "../../src/service/store/block-format.ts";
import { decodedRun } from "../../src/service/store/point-run.ts";
import type { PointRun } from "../../src/service/store/point-store.ts";
import { dataFrame } from "../../src/wire/results.ts";
import { integrationId } from "../../src/wire/signal-view.ts";
import { parseTimestamp } from "../../src/wire/timestamp.ts";

/** Keys of `data.series` are Input IDs. */
export const insertParams = z.object({
  integration: integrationId,
  data: dataFrame.superRefine(({ series }, context) => {
    for (const key of Object.keys(series))
      if (!isInputId(key))
        context.addIssue({ code: "custom", path: ["series", key], message: "must be an Input ID", input: key });
  }),
});

const insertRequest = z.strictObject({
  jsonrpc: z.literal("2.0"),
  method: z.literal("integration.insert"),
  id: z.int(),
  params: insertParams.strict(),
});

/** The points that the service has read, decoded. */
export function columnsOf(run: PointRun): BlockColumns {
  return "times" in run ? run : decodedRun(run);
}

/** The frame of a request that the agent wrote. Throws if the schema refuses it or the service reads another frame. */
export function frameWritten(body: string): z.output<typeof dataFrame> {
  const { data } = insertRequest.parse(JSON.parse(body)).params;
  const request = atOnce(readInsert(Buffer.from(body))) as
    | { readonly params?: { readonly data?: unknown } }
    | undefined; // its return type
  const faults = new Faults();
  const read = checkFrame(request?.params?.data, "data", faults);
  faults.throwIfAny();
  const times = data.times.map((time) => parseTimestamp(time) ?? Number.NaN);
  const written = Object.entries(data.series).map(([input, values]) => {
    const points = times.flatMap((time, i) => (values[i] === null ? [] : [[time, values[i]]]));
    return [input, points];
  });
  const stored = Array.from(read, ([input, pointsOf]) => {
    const columns = columnsOf(pointsOf());
    return [input, Array.from(columns.times, (time, i) => [time, columns.values[i]])];
  });
  expect(stored).toEqual(written);
  return data;
}
