// What a save or insert says of each resource it touched.
import { z } from "zod";

/** `updated` is sent by saveSignals and publishSignals from 1.1 on, never by insert. */
export const saveSummary = z.object({ id: z.string(), created: z.boolean(), updated: z.boolean().optional() });
export type SaveSummary = z.output<typeof saveSummary>;

export const saveSummaries = z.record(z.string(), saveSummary);
