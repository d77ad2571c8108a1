// Signals and items: formats of identifiers and keys, attributes, and the views used to save and select them.
import { z } from "zod";
import { fixedDuration } from "./rfc-duration.ts";
import { timestamp } from "./timestamp.ts";

/** Integration, signal and item IDs: 12 bytes in lower-case base32hex. */
export const resourceIdPattern = /^[a-v0-9]{20}$/;
/** Keys of labels and annotations. */
export const keyPattern = /^[A-Za-z0-9\-_/]{1,128}$/;
/** Keys of `enumValues`: 0 to 9999, no leading zeros. */
const enumKeyPattern = /^(?:0|[1-9]\d{0,3})$/;

export const integrationId = z
  .string()
  .regex(resourceIdPattern, { error: "must be an Integration ID: 20 characters of a-v and 0-9" });
export const itemId = z
  .string()
  .regex(resourceIdPattern, { error: "must be an Item ID: 20 characters of a-v and 0-9" });

const labelKey = z.string().regex(keyPattern, { error: "key must be 1 to 128 characters of A-Z a-z 0-9 - _ /" });
const enumKey = z
  .string()
  .regex(enumKeyPattern, { error: "key must be an integer from 0 to 9999 without leading zeros" });

function text(min: number, max: number) {
  const error = `must have ${min > 0 ? `${min} to` : "at most"} ${max} characters`;
  return z.string().min(min, { error }).max(max, { error });
}

/** Most characters of an attribute, or of each of its texts. */
export const longestTexts = { name: 128, description: 1_000, engUnit: 255, enumValues: 128 } as const;

/** The attributes, each without its default. */
const attributes = {
  annotations: z
    .record(labelKey, z.string())
    .describe("Arbitrary parameters. Keys should begin with company-domain/application-name/."),
  name: text(1, longestTexts.name).describe("Display name."),
  type: z.enum(["numeric", "enum"]).describe("Whether values are numbers or states named in enumValues."),
  description: text(0, longestTexts.description).describe("Longer text for people."),
  labels: z.record(labelKey, z.array(z.string())).describe("Labels to search and group by: key → list of texts."),
  engUnit: text(0, longestTexts.engUnit).describe("Unit shown next to numbers."),
  enumValues: z
    .record(enumKey, text(1, longestTexts.enumValues))
    .describe("Number → text that is shown instead, for type enum."),
  sourceType: z.enum(["measurement", "aggregation", "prediction"]).describe("Where the values come from."),
  sampleInterval: fixedDuration
    .nullable()
    .describe("How often the signal is sampled on average, as an RFC 3339 duration such as PT1M."),
  gapDetection: fixedDuration
    .nullable()
    .describe("A gap is drawn when there is no data for longer than this RFC 3339 duration, such as PT5M."),
};

/** The attributes that a configuration may set. All are optional and have no default. */
export const signalAttributes = z.strictObject(attributes).partial();

/** Signal save view. Omitted members get their default; the default of `name` is the Input ID. */
export const signalSaveView = z.strictObject({
  annotations: attributes.annotations.default({}),
  name: attributes.name.optional(),
  type: attributes.type.default("numeric"),
  description: attributes.description.default(""),
  labels: attributes.labels.default({}),
  engUnit: attributes.engUnit.default(""),
  enumValues: attributes.enumValues.default({}),
  sourceType: attributes.sourceType.default("measurement"),
  sampleInterval: attributes.sampleInterval.default(null),
  gapDetection: attributes.gapDetection.default(null),
});
export type SignalSaveView = z.output<typeof signalSaveView>;

/** Item save view: `name`, `type` and `sourceType` are required. */
export const itemSaveView = signalSaveView.extend({
  name: attributes.name,
  type: attributes.type,
  sourceType: attributes.sourceType,
  /** Hosted service only. Unless true, ordinary users do not see the item. */
  visible: z.boolean().optional(),
});
export type ItemSaveView = z.output<typeof itemSaveView>;
export type ItemSaveInput = z.input<typeof itemSaveView>;

const resourceMeta = z.object({ contentHash: z.string(), createdAt: timestamp, updatedAt: timestamp });

/** Signal select view of the specification's dialect. The service also sends `inputId`, which is not specified. */
export const signalSelectView = z.object({
  ...attributes,
  id: z.string().optional(),
  meta: resourceMeta,
  inputId: z.string().optional(),
  item: itemId.nullable().optional(),
});
export type SignalSelectView = z.output<typeof signalSelectView>;

/** Item select view of the specification's dialect. */
export const itemSelectView = z.object({ ...attributes, id: z.string().optional(), meta: resourceMeta });
export type ItemSelectView = z.output<typeof itemSelectView>;
