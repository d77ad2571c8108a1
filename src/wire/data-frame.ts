// The data frame: one list of times, and for each key a list of as many values.
import { z } from "zod";
import { timestamp } from "./timestamp.ts";

/** A number, or null for "nothing at this time". Null never erases what is stored. */
const cell = z.number().nullable();

export const sameLength = "not same length as times";

export const dataFrame = z
  .object({ times: z.array(timestamp), series: z.record(z.string(), z.array(cell)) })
  .superRefine(({ times, series }, context) => {
    for (const [key, values] of Object.entries(series))
      if (values.length !== times.length)
        context.addIssue({ code: "custom", path: ["series", key], message: sameLength, input: values });
  });
export type DataFrame = z.output<typeof dataFrame>;
