// integration.insert: stores points, and creates the signals that are missing.
import { z } from "zod";
import { dataFrame } from "./data-frame.ts";
import { inputId, integrationId } from "./identifiers.ts";

/**
 * Keys of `data.series` are Input IDs. For reading and for tests: the service checks the same by hand, since a full
 * request has 1.5 million values.
 */
export const insertParams = z.object({
  integration: integrationId,
  data: dataFrame.superRefine(({ series }, context) => {
    for (const key of Object.keys(series)) {
      const issue = inputId.safeParse(key).error?.issues[0];
      if (issue) context.addIssue({ code: "custom", path: ["series", key], message: issue.message, input: key });
    }
  }),
});
export type InsertParams = z.input<typeof insertParams>;
