// Generates the Markdown reference of the configuration from the schemas that validate it.
import type { Driver } from "../../core/driver.ts";
import { tagOptions } from "../../mapping/options.ts";
import { runOption, sections } from "../format/file-schema.ts";
import { cascadedOfSource } from "../sources/expand.ts";
import { type JsonSchema, schemaOf } from "./json-schema.ts";

export function configReference(drivers: readonly Driver[]): string {
  return `${[
    preface,
    "## The file",
    table([
      row("version", "`1`", "Version of this file's format.", "required"),
      ...Object.entries(sections).flatMap(([key, schema]) => rows(key, schemaOf(schema), key === "service")),
      row("defaults", "map", "Fields of every tag that says nothing else; see [Tags](#tags), all but `input`."),
      row("templates", "map of lists", "Lists of tags by name; see [Templates](#templates-and-variables)."),
      row("sources", "map", "Where tags are read, by name. The name stands in logs, metrics and status."),
    ]),
    "## Tags",
    "What a tag has whatever its protocol. All but `input` and `shared` may also stand in `defaults`, on the source and on the device: what stands nearer to the tag goes before what stands further away. `report`, `signal` and `valid` come together key by key.",
    table(rowsOf({ ...schemaOf(tagOptions), required: ["input"] })),
    templates,
    ...drivers.flatMap(section),
  ].join("\n\n")}\n`;
}

const preface = `# Configuration reference

Written by \`tagferry schema --reference\` from the schemas that also check the file; do not edit. For editors there is [tagferry.schema.json](tagferry.schema.json): begin the file with \`# yaml-language-server: $schema=./tagferry.schema.json\`.

- Lengths of time carry their unit (\`250ms\`, \`5s\`, \`1h30m\`, \`7d\`), so do amounts of bytes (\`64KiB\`, \`2GiB\`).
- Any value may be a reference: \`\${NAME}\`, \`\${NAME:-default}\`, \`\${file:/path}\` (without its last newline) or, under systemd, \`\${credential:name}\`. What it gives is converted like a value without quotes. In braces and brackets references and JSON paths need quotes. \`$\${\` stands for \`\${\`.
- Unknown keys are errors. \`tagferry check -c FILE\` lists every error with its position.
- Relative paths in \`\${file:}\` start from the folder of the file; \`dataDir\` and certificates from the working directory.`;

const templates = `## Templates and variables

\`\`\`yaml
templates:
  meter:
    - { input: "{dev}.voltage", at: "hr:0 u16", scale: 0.1 }
    - { input: "{dev}.power", at: "hr:4 f32" }
sources:
  bus1:
    type: modbus
    url: tcp://10.0.0.5:502
    devices:
      - { unit: 1, template: meter, vars: { dev: hall1.m1 } }
      - unit: 2
        template: meter
        vars: { dev: hall1.m2 }
        tags:
          - { input: hall1.m2.voltage, scale: 0.01 }   # the same input: over the template's
\`\`\`

Lists may be kept in a spreadsheet: \`tagsFrom: tags.csv\` in addition to or instead of \`tags\`, \`devicesFrom\` likewise. The first row names the columns like the keys (\`input\`, \`at\`, \`scale\`, \`signal.engUnit\`, \`vars.dev\`); cells are separated by commas, semicolons (then numbers may have a decimal comma) or tabs, whichever is most frequent in the header, or as a first line \`sep=|\` sets it. Rows that begin with \`#\` are comments. An empty cell leaves its field unset. A cell in brackets or braces is a list or a map: \`[north, hall1]\` in a column \`signal.labels.site\`.

\`template\` names a template, or a list of them, on a device or on an entry of \`tags\`. \`vars\` stands on a source, a device or a tag; \`{name}\` is replaced in every field. Names that no variable has are filled by what the address captures.`;

function section(driver: Driver): readonly string[] {
  const { type, summary, device } = driver;
  const code = (keys: readonly string[]) => keys.map((key) => `\`${key}\``).join(", ");
  const down = cascadedOfSource(driver).filter((key) => device?.includes(key));
  const devices = `Devices behind this address: each has \`tags\` or a \`template\`, and may have ${code(device ?? [])} for all its tags.`;
  return [
    `## Source: ${type}`,
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    table([
      row("type", code([type]), "The protocol.", "required"),
      ...rows("run", schemaOf(runOption), false),
      ...rowsOf(schemaOf(driver.schema)),
      row("tags", "list", "What is read."),
      ...(device ? [row("devices", "list", devices)] : []),
    ]),
    `### Tags of ${type}`,
    ...(down.length === 0 ? [] : [`${code(down)} may also stand on the source, for all its tags.`]),
    table(rowsOf(schemaOf(driver.tag))),
  ];
}

const heading = ["| key | takes | default | |", "|---|---|---|---|"];

function table(lines: readonly string[]): string {
  return [...heading, ...lines].join("\n");
}

function row(key: string, takes: string, description: string, initial = ""): string {
  const cells = [`\`${key}\``, takes, initial, description];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("\n", " ")).join(" | ")} |`;
}

/** One line for each field of a map, with `path` prepended to its name. */
function rowsOf({ properties = {}, required = [] }: JsonSchema, path = ""): readonly string[] {
  return Object.entries(properties).flatMap(([key, field]) => rows(`${path}${key}`, field, required.includes(key)));
}

/** One line for the field, and one for each key if it is a map. */
function rows(path: string, field: JsonSchema, required: boolean): readonly string[] {
  const shape = objectOf(field);
  const initial = field.default === undefined || isEmpty(field.default) ? "" : `\`${plain(field.default)}\``;
  const example = Array.isArray(field.examples)
    ? ` Example: ${field.examples.map((value) => `\`${plain(value)}\``).join(", ")}.`
    : "";
  const description = `${field.description ?? ""}${example}`.trim();
  const own = row(path, takes(field), description, required ? "required" : initial);
  return [own, ...(shape ? rowsOf(shape, `${path}.`) : [])];
}

function alternatives({ anyOf }: JsonSchema): readonly JsonSchema[] {
  return Array.isArray(anyOf) ? anyOf.filter((branch) => typeof branch === "object" && branch !== null) : [];
}

/** The map with named keys that a field is, or allows. */
function objectOf(field: JsonSchema): JsonSchema | undefined {
  return field.properties ? field : alternatives(field).find((branch) => branch.properties);
}

function takes(field: JsonSchema): string {
  const branches = alternatives(field);
  if (branches.length > 0) return [...new Set(branches.map(takes))].join(" or ");
  if (Array.isArray(field.enum)) return field.enum.map((value) => `\`${String(value)}\``).join(", ");
  if (field.const !== undefined) return `\`${plain(field.const)}\``;
  if (field.measure === "duration") return "time";
  if (field.measure === "bytes") return "bytes";
  switch (field.type) {
    case "integer":
    case "number":
      return range(field);
    case "boolean":
      return "`true`, `false`";
    case "array":
      return "list";
    case "object":
      return "map";
    case "null":
      return "`null`";
    default:
      return field.writeOnly === true ? "secret" : "text";
  }
}

function range({ type, minimum, maximum, exclusiveMinimum }: JsonSchema): string {
  const word = type === "integer" ? "whole number" : "number";
  const limit = (value: unknown) =>
    typeof value === "number" && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined;
  const [low, high] = [limit(minimum), limit(maximum)];
  if (low !== undefined && high !== undefined) return `${word}, ${low} to ${high}`;
  if (low !== undefined) return `${word} from ${low}`;
  if (exclusiveMinimum !== undefined) return `${word} above ${plain(exclusiveMinimum)}`;
  return high === undefined ? word : `${word} to ${high}`;
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function plain(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
