// What clients write into save views beyond the specification, and are understood.
import type { z } from "zod";
import { isRecord } from "./check-frame.ts";
import type { Faults } from "./rpc-fault.ts";

const emptyMeansDefault = ["type", "valueType", "sourceType"];
const nullMeansDefault = ["annotations", "labels", "enumValues"];

/**
 * Reads a save view at `path`: `valueType` is another name of `type`, and a client's way of leaving a member out (empty
 * text, null map) is leaving it out. Undefined when it has faults.
 */
export function readSaveView<Schema extends z.ZodObject>(
  schema: Schema,
  view: unknown,
  path: string,
  faults: Faults,
): z.output<Schema> | undefined {
  if (!isRecord(view)) {
    faults.add(path, "must be an object");
    return undefined;
  }
  const read: Record<string, unknown> = { ...view };
  for (const key of emptyMeansDefault) if (read[key] === "") delete read[key];
  for (const key of nullMeansDefault) if (read[key] === null) delete read[key];
  if ("valueType" in read) {
    read["type"] ??= read["valueType"];
    delete read["valueType"];
  }
  const parsed = schema.safeParse(read);
  if (parsed.success) return parsed.data;
  faults.addIssues(path, parsed.error, read);
  return undefined;
}

/** A member that must be true, false, null or left out. */
export function readFlag(value: unknown, path: string, faults: Faults): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") faults.add(path, "must be true or false");
  return value === true;
}
