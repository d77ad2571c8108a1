// Generates the JSON Schema of the configuration for editors, from the schemas that validate it.
import { z } from "zod";
import type { Driver } from "../../core/driver.ts";
import { tagOptions } from "../../mapping/options.ts";
import { cascadedKeys, runOption, sections } from "../format/file-schema.ts";
import { core, defaultOf, layers } from "../nodes/schema-walk.ts";
import { cascadedOfSource } from "../sources/expand.ts";

/** The parts of JSON Schema that are generated. */
export interface JsonSchema {
  [key: string]: unknown;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  description?: string;
}

/** JSON Schema of a part of the file, with what zod cannot generate: patterns and defaults of durations and sizes. */
export function schemaOf(schema: z.core.$ZodType): JsonSchema {
  const made: unknown = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", override: complete });
  const { $schema: _, ...rest } = z.record(z.string(), z.unknown()).parse(made);
  return rest;
}

type Override = NonNullable<NonNullable<Parameters<typeof z.toJSONSchema>[1]>["override"]>;

const complete: Override = ({ zodSchema, jsonSchema }) => {
  const metas = layers(zodSchema).map((layer) => z.globalRegistry.get(layer));
  // The default of a transform is its output, but the file contains its input.
  if (zodSchema instanceof z.ZodDefault && metas.some((meta) => meta?.measure !== undefined))
    jsonSchema.default = defaultOf(zodSchema);
  if (core(zodSchema) instanceof z.ZodString && metas.some((meta) => meta?.secret === true)) {
    delete jsonSchema.secret;
    jsonSchema.writeOnly = true;
  }
};

/** Fields of a tag. None is required, since a tag may inherit each of them. */
function tagSchemaOf(driver: Driver): JsonSchema {
  const { properties } = schemaOf(driver.tag);
  return closed({ input: shared("input"), ...properties, ...cascaded(cascadedKeys), ...templateKeys });
}

/** A map without additional keys. */
function closed(properties: Record<string, JsonSchema>, description?: string, required?: string[]): JsonSchema {
  return {
    type: "object",
    ...(description !== undefined && { description }),
    properties,
    ...(required && { required }),
    additionalProperties: false,
  };
}

function listOf(definition: string, description?: string): JsonSchema {
  return {
    type: "array",
    ...(description !== undefined && { description }),
    items: { $ref: `#/$defs/${definition}` },
  };
}

/** A field that all protocols share; it is described once. */
function shared(key: string): JsonSchema {
  return { $ref: `#/$defs/tag/properties/${key}` };
}

function cascaded(keys: readonly string[]): Record<string, JsonSchema> {
  return Object.fromEntries(keys.map((key) => [key, shared(key)]));
}

const oneOrMany: JsonSchema = { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] };

function fromTable(list: string): JsonSchema {
  return {
    description: `CSV file, or a list of them, whose rows are further entries of ${list}; its columns are named like the keys, as in signal.engUnit.`,
    ...oneOrMany,
  };
}

const templateKeys: Record<string, JsonSchema> = {
  template: {
    description:
      "Name of a template, or a list of names: its tags stand here, with the other fields of this entry over theirs.",
    ...oneOrMany,
  },
  vars: {
    description: "Variables: {name} in any field of the tags is replaced by the value.",
    type: "object",
    additionalProperties: { type: ["string", "number", "boolean"] },
  },
};

/** Fields of `driver` that tags inherit. They have no default here, since a missing field is not inherited. */
function deviceFields(driver: Driver, keys: readonly string[]): Record<string, JsonSchema> {
  const fields = schemaOf(driver.tag).properties ?? {};
  return Object.fromEntries(
    keys.map((key) => {
      const { default: _, ...field } = fields[key] ?? {};
      return [key, field];
    }),
  );
}

function sourceSchemaOf(driver: Driver): JsonSchema {
  const { type, summary, device } = driver;
  const options = schemaOf(driver.schema);
  const { cascades = [], own = [] } = Object.groupBy(cascadedOfSource(driver), (key) =>
    cascadedKeys.includes(key) ? "cascades" : "own",
  );
  const properties = {
    type: { const: type },
    run: schemaOf(runOption),
    ...options.properties,
    ...cascaded(cascades),
    ...deviceFields(driver, own),
    vars: templateKeys.vars ?? {},
    tags: listOf(`${type}Tag`, "What is read."),
    tagsFrom: fromTable("tags"),
    ...(device && {
      devicesFrom: fromTable("devices"),
      devices: listOf(`${type}Device`, "Devices behind this address."),
    }),
  };
  return closed(properties, summary, ["type", ...(options.required ?? [])]);
}

function deviceSchemaOf(driver: Driver): JsonSchema {
  return closed({
    ...deviceFields(driver, driver.device ?? []),
    ...cascaded(cascadedKeys),
    ...templateKeys,
    tags: listOf(`${driver.type}Tag`),
    tagsFrom: fromTable("tags"),
  });
}

export function configJsonSchema(drivers: readonly Driver[]): JsonSchema {
  const own = Object.entries(sections).map(([key, schema]): [string, JsonSchema] => [key, schemaOf(schema)]);
  const definitions = drivers.flatMap((driver): [string, JsonSchema][] => [
    [`${driver.type}Source`, sourceSchemaOf(driver)],
    [`${driver.type}Tag`, tagSchemaOf(driver)],
    ...(driver.device ? [[`${driver.type}Device`, deviceSchemaOf(driver)] satisfies [string, JsonSchema]] : []),
  ]);
  const types = drivers.map(({ type }) => type);
  const whole: JsonSchema = {
    type: "object",
    properties: {
      version: { const: 1, description: "Version of this file's format." },
      ...Object.fromEntries(own),
      defaults: closed(cascaded(cascadedKeys), "What holds for every tag that says nothing else."),
      templates: {
        type: "object",
        description: "Lists of tags by name, for devices that are alike.",
        additionalProperties: {
          type: "array",
          items: { anyOf: types.map((type) => ({ $ref: `#/$defs/${type}Tag` })) },
        },
      },
      include: {
        description:
          "Files with further sources and templates: a name, a pattern such as conf.d/*.yaml, or a list of them.",
        ...oneOrMany,
      },
      sources: {
        type: "object",
        description: "Where tags are read, by name. The name stands in logs, metrics and status.",
        additionalProperties: {
          type: "object",
          properties: { type: { enum: types } },
          required: ["type"],
          allOf: types.map((type) => ({
            if: { properties: { type: { const: type } }, required: ["type"] },
            // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
            then: { $ref: `#/$defs/${type}Source` },
          })),
        },
      },
    },
    required: ["version", "service"],
    additionalProperties: false,
    $defs: { ...Object.fromEntries(definitions), tag: schemaOf(tagOptions) },
  };
  const { $defs, ...rest } = withReferences(whole);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of tagferry",
    ...rest,
    $defs: { ...(typeof $defs === "object" ? $defs : {}), reference },
  };
}

/** Placeholder of a value that is not known yet: a reference, or a variable of a template. */
const reference = {
  type: "string",
  description: "${NAME}, ${NAME:-default}, ${file:/path} or ${credential:name}; in templates also {variable}.",
  pattern: String.raw`\$\{[^}]*\}|\{[A-Za-z_][\w-]*\}`,
};

/** Allows a reference in place of any single value. Annotations for editors stay at the outer level. */
function withReferences(schema: JsonSchema): JsonSchema {
  const { description, default: initial, examples, writeOnly, measure: _, ...rest } = schema;
  const walked = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, walk(value)]));
  const outside = Object.fromEntries(
    Object.entries({ description, default: initial, examples, writeOnly }).filter(([, value]) => value !== undefined),
  );
  const scalar = ["string", "number", "integer", "boolean"].includes(String(rest.type));
  const constrained = rest.type !== "string" || Object.keys(rest).length > 1;
  if (!scalar || !constrained) return { ...outside, ...walked };
  return { ...outside, anyOf: [withNumbers(walked), { $ref: "#/$defs/reference" }] };
}

function walk(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(walk);
  if (typeof value !== "object" || value === null) return value;
  return withReferences({ ...value });
}

/** An editor parses `apiVersion: 1.0` as a number, the agent as the text 1.0. */
function withNumbers(schema: JsonSchema): JsonSchema {
  const { enum: values, type: _, ...rest } = schema;
  const numbers = Array.isArray(values)
    ? values
        .filter((value) => typeof value === "string" && value.trim() !== "" && Number.isFinite(Number(value)))
        .map(Number)
    : [];
  return numbers.length === 0 || !Array.isArray(values) ? schema : { ...rest, enum: [...values, ...numbers] };
}
