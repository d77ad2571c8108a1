// What saveSignals, publishSignals and insert answer: one summary for each resource.
import { z } from "zod";

/** `updated` is sent by saveSignals and publishSignals from 1.1 on, never by insert. */
const saveSummary = z.object({ id: z.string(), created: z.boolean(), updated: z.boolean().optional() });
export type SaveSummary = z.output<typeof saveSummary>;

/** Keyed by the ID that the request had: an Input ID, or the Signal ID of a publication. */
export const saveSummaries = z.record(z.string(), saveSummary);

export const publishSignalsResult = z.object({ itemsBySignal: saveSummaries });
