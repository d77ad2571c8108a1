// What a method is given, and how it reads its params: each fault is added with its path.
import type { z } from "zod";
import type { Grant, ServedVersion } from "../../wire/method.ts";
import { integrationId } from "../../wire/signal-view.ts";
import type { ServiceStore } from "../store/store.ts";
import { type Faults, RpcFault } from "./rpc-fault.ts";

/** Who calls: an integration whose credentials were right. */
export interface Caller {
  readonly integration: string;
  readonly grants: readonly Grant[];
}

export type Members = Readonly<Record<string, unknown>>;

export interface MethodCall {
  readonly params: Members;
  readonly caller: Caller;
  readonly version: ServedVersion;
  /** Found before the method reads its params, and where it adds what it finds. */
  readonly faults: Faults;
  /** Wall time of the service, microseconds since the epoch. */
  readonly now: number;
  readonly store: ServiceStore;
  /** Input IDs that an insert is to refuse, for drills. */
  readonly refusedInputs: readonly string[];
}

/** Throws `RpcFault`; then the store is as it was. */
export type MethodHandler = (call: MethodCall) => object;

export function isRecord(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Null stands for a param that is left out. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The members of an object that may be left out. */
export function membersOf(value: unknown, path: string, faults: Faults): Members {
  if (isRecord(value)) return value;
  if (isGiven(value)) faults.add(path, "must be an object");
  return {};
}

/** The members of an object that must be there. */
export function requiredMembers(value: unknown, path: string, faults: Faults): Members | undefined {
  if (isRecord(value)) return value;
  faults.add(path, value === undefined ? "required" : "must be an object");
  return undefined;
}

/** A member that must be true, false, null or left out. */
export function readFlag(value: unknown, path: string, faults: Faults, otherwise = false): boolean {
  if (isGiven(value) && typeof value !== "boolean") faults.add(path, "must be true or false");
  return typeof value === "boolean" ? value : otherwise;
}

export function readInteger(value: unknown, path: string, otherwise: number, faults: Faults): number {
  if (!isGiven(value)) return otherwise;
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  faults.add(path, "must be an integer");
  return otherwise;
}

/** The `integration` param of the admin methods, which may name any integration. */
export function anyIntegration(params: Members, faults: Faults): string {
  const parsed = integrationId.safeParse(params["integration"]);
  if (parsed.success) return parsed.data;
  faults.addIssues("integration", parsed.error, params["integration"]);
  return "";
}

/**
 * The `integration` param of the integration methods. Throws -32003 where a well-formed ID is another integration's;
 * anything else wrong goes to `faults`.
 */
export function ownIntegration({ params, caller }: MethodCall, faults: Faults): string {
  const integration = anyIntegration(params, faults);
  if (integration !== caller.integration && !faults.any)
    throw new RpcFault("forbidden", {
      message: `Operation not permitted: these are the credentials of integration ${caller.integration}`,
    });
  return integration;
}

/** A save view, and which annotations it removes. */
export type Saved<View> = View & { readonly removed: readonly string[] };

const emptyMeansDefault = ["type", "valueType", "sourceType"];
const nullMeansDefault = ["annotations", "labels", "enumValues"];

/**
 * Reads a save view at `path`, also what clients write beyond the specification: `valueType` is another name of `type`,
 * and a client's way of leaving a member out (empty text, null map) is leaving it out. An annotation that is null is to be
 * removed. Undefined when it has faults.
 */
export function readSaveView<Schema extends z.ZodObject>(
  schema: Schema,
  value: unknown,
  path: string,
  faults: Faults,
): Saved<z.output<Schema>> | undefined {
  if (!isRecord(value)) {
    faults.add(path, "must be an object");
    return undefined;
  }
  const { valueType, ...view }: Record<string, unknown> = value;
  for (const key of emptyMeansDefault) if (view[key] === "") delete view[key];
  for (const key of nullMeansDefault) if (view[key] === null) delete view[key];
  if (valueType !== undefined && valueType !== "") view["type"] ??= valueType;
  const annotations = isRecord(view["annotations"]) ? Object.entries(view["annotations"]) : [];
  const removed = annotations.filter(([, text]) => text === null).map(([key]) => key);
  if (removed.length > 0) view["annotations"] = Object.fromEntries(annotations.map(([key, text]) => [key, text ?? ""]));
  const parsed = schema.safeParse(view);
  if (parsed.success) return { ...parsed.data, removed };
  faults.addIssues(path, parsed.error, view);
  return undefined;
}

const maxDepth = 32;
/** Maps whose keys are Input IDs, of which `__proto__` is a valid one. */
const mapsOfInputs: readonly string[] = ["data.series", "inputs", "signalsByInput"];

/**
 * Adds a fault for each key `__proto__` that is no Input ID: programs on either side could take it for more than a name.
 * Throws -32602 where params are nested deeper than any method needs.
 */
export function checkShape(params: object, faults: Faults): void {
  if (!visit(params, "", 1, faults)) faults.throwIfAny();
}

/** False when `value` is nested too deep. */
function visit(value: object, path: string, depth: number, faults: Faults): boolean {
  if (depth > maxDepth) {
    faults.add(path, `must not be nested more than ${maxDepth} deep`);
    return false;
  }
  const at = (key: string | number) => (path === "" ? String(key) : `${path}.${key}`);
  const descend = (key: string | number, member: unknown) =>
    typeof member !== "object" || member === null || visit(member, at(key), depth + 1, faults);
  let good = true;
  // Not by its entries: an array may hold a million values.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) good = descend(i, value[i]) && good;
  else
    for (const [key, member] of Object.entries(value))
      if (key === "__proto__" && !mapsOfInputs.includes(path)) faults.add(at(key), "must not be __proto__");
      else good = descend(key, member) && good;
  return good;
}

/** An object in which every key is a name and no more, `__proto__` too. */
export function emptyMap<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>; // has no members yet
}
