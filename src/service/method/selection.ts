// What selects of the current dialect share: which dialect a request speaks, and the shape of an answer.
import type { MethodCall } from "../call/call.ts";
import { isRecord } from "../call/check-frame.ts";
import type { Faults } from "../call/rpc-fault.ts";
import type { TypedResource } from "./typed-resource.ts";

/** Resources a query of the current dialect gives when it says nothing. */
export const currentDefaultLimit = 20;

/** At 1.1 too, a request that has one of these params of the specification is answered as the specification says. */
export function speaksSpecified({ version, params }: MethodCall, names: readonly string[]): boolean {
  return version !== "1.1" || names.some((name) => params[name] !== undefined && params[name] !== null);
}

interface SelectionFormat {
  /** False: `data` is a map by ID. */
  readonly dataAsArray: boolean;
  /** False: `included` is one array of all types. */
  readonly groupIncludedByType: boolean;
}

/** Null and absent members have their defaults. */
export function readFormat(format: unknown, defaults: SelectionFormat, faults: Faults): SelectionFormat {
  if (format === undefined || format === null) return defaults;
  if (!isRecord(format)) {
    faults.add("format", "must be an object");
    return defaults;
  }
  const flag = (name: keyof SelectionFormat) => {
    const value = format[name] ?? defaults[name];
    if (typeof value !== "boolean") faults.add(`format.${name}`, "must be true or false");
    return value === true;
  };
  return { dataAsArray: flag("dataAsArray"), groupIncludedByType: flag("groupIncludedByType") };
}

/** Whether items are to be included; clients call them `item` and `items`. */
export function readInclude(include: unknown, faults: Faults): boolean {
  if (include === undefined || include === null) return false;
  if (!Array.isArray(include)) {
    faults.add("include", "must be an array of texts");
    return false;
  }
  for (const [index, name] of include.entries())
    if (name !== "item" && name !== "items") faults.add(`include.${index}`, 'can be "item"');
  return include.length > 0;
}

interface SelectionParts {
  readonly total: number;
  readonly format: SelectionFormat;
  readonly resources: readonly TypedResource[];
  /** Items; undefined where none were asked for. */
  readonly included: readonly TypedResource[] | undefined;
}

/** An answer that holds resources. */
export function selection({ total, format, resources, included }: SelectionParts): object {
  return {
    meta: { total, format },
    data: format.dataAsArray ? resources : Object.fromEntries(resources.map((resource) => [resource.id, resource])),
    ...includedMember(included, format),
  };
}

/** A public client stumbles over an `included` that is empty, so then there is none. */
export function includedMember(items: readonly TypedResource[] | undefined, format: SelectionFormat): object {
  if (items === undefined || items.length === 0) return {};
  return { included: format.groupIncludedByType ? { items } : items };
}
