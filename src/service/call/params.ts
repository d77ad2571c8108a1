// The input of a method, and helpers to read its params. Each fault is recorded with its path.
import type { z } from "zod";
import type { Grant, ServedVersion } from "../../wire/method.ts";
import { integrationId } from "../../wire/signal-view.ts";
import type { ServiceStore } from "../store/store.ts";
import { type Faults, RpcFault } from "./rpc-fault.ts";

/** The integration that was authenticated. */
export interface Caller {
  readonly integration: string;
  readonly grants: readonly Grant[];
}

export type Members = Readonly<Record<string, unknown>>;

export interface MethodCall {
  readonly params: Members;
  readonly caller: Caller;
  readonly version: ServedVersion;
  /** Faults of the request so far; the method adds its own. */
  readonly faults: Faults;
  /** Wall time of the service, microseconds since the epoch. */
  readonly now: number;
  readonly store: ServiceStore;
  /** Input IDs that an insert refuses, as an injected fault. */
  readonly refusedInputs: readonly string[];
}

/** Throws `RpcFault` and then leaves the store unchanged. */
export type MethodHandler = (call: MethodCall) => object;

export function isRecord(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A null param counts as left out. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** The members of an optional object. */
export function membersOf(value: unknown, path: string, faults: Faults): Members {
  if (isRecord(value)) return value;
  if (isGiven(value)) faults.add(path, "must be an object");
  return {};
}

/** The members of a required object. */
export function requiredMembers(value: unknown, path: string, faults: Faults): Members | undefined {
  if (isRecord(value)) return value;
  faults.add(path, value === undefined ? "required" : "must be an object");
  return undefined;
}

/** An optional boolean; null counts as left out. */
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

/** The `integration` param of the admin methods, which accept any integration. */
export function anyIntegration(params: Members, faults: Faults): string {
  const parsed = integrationId.safeParse(params["integration"]);
  if (parsed.success) return parsed.data;
  faults.addIssues("integration", parsed.error, params["integration"]);
  return "";
}

/** The caller's `integration` param. Throws -32003 for another integration. Other errors go to `faults`. */
export function ownIntegration({ params, caller }: MethodCall, faults: Faults): string {
  const integration = anyIntegration(params, faults);
  if (integration !== caller.integration && !faults.any)
    throw new RpcFault("forbidden", {
      message: `Operation not permitted: these are the credentials of integration ${caller.integration}`,
    });
  return integration;
}

/** A save view, and the annotations that it removes. */
export type Saved<View> = View & { readonly removed: readonly string[] };

const emptyMeansDefault = ["type", "valueType", "sourceType"];
const nullMeansDefault = ["annotations", "labels", "enumValues"];

/**
 * Reads a save view; undefined: faults. Accepts `valueType` for `type`, and an empty text or null map for a missing
 * member. A null annotation is removed.
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
/** Maps with Input IDs as keys, where `__proto__` is valid. */
const mapsOfInputs: readonly string[] = ["data.series", "inputs", "signalsByInput"];

/** Adds a fault for each `__proto__` key that is not an Input ID. Throws -32602 if params are nested too deeply. */
export function checkShape(params: object, faults: Faults): void {
  if (!visit(params, "", 1, faults)) faults.throwIfAny();
}

/** False: `value` is nested too deeply. */
function visit(value: object, path: string, depth: number, faults: Faults): boolean {
  if (depth > maxDepth) {
    faults.add(path, `must not be nested more than ${maxDepth} deep`);
    return false;
  }
  const at = (key: string | number) => (path === "" ? String(key) : `${path}.${key}`);
  const descend = (key: string | number, member: unknown) =>
    typeof member !== "object" || member === null || visit(member, at(key), depth + 1, faults);
  let good = true;
  // Not with entries(): an array may have a million values.
  if (Array.isArray(value)) for (let i = 0; i < value.length; i++) good = descend(i, value[i]) && good;
  else
    for (const [key, member] of Object.entries(value))
      if (key === "__proto__" && !mapsOfInputs.includes(path)) faults.add(at(key), "must not be __proto__");
      else good = descend(key, member) && good;
  return good;
}

/** An object without a prototype, so that `__proto__` is an ordinary key. */
export function emptyMap<T>(): Record<string, T> {
  return Object.create(null) as Record<string, T>; // it has no members yet
}
