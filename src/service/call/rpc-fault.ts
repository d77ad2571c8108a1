// Errors of a request as JSON-RPC errors, and the collection of all faults of a request.
import type { z } from "zod";
import { type InvalidResource, type RpcErrorName, rpcErrors } from "../../wire/json-rpc.ts";

interface RpcFaultDetails {
  /** Dotted path → messages. */
  readonly params?: Readonly<Record<string, readonly string[]>>;
  readonly invalidResources?: readonly InvalidResource[];
  readonly partialResult?: unknown;
}

/** Ends a call. The store is unchanged, except for -32021, which tells what was stored. */
export class RpcFault extends Error {
  override readonly name = "RpcFault";
  readonly code: number;
  readonly details: RpcFaultDetails;

  constructor(
    error: RpcErrorName,
    details: RpcFaultDetails & { readonly message?: string; readonly cause?: unknown } = {},
  ) {
    const { message, cause, ...rest } = details;
    super(message ?? rpcErrors[error].message, cause === undefined ? {} : { cause });
    this.code = rpcErrors[error].code;
    this.details = rest;
  }
}

/** -32602 with one fault. */
export function invalidParams(path: string, message: string, cause?: unknown): RpcFault {
  return new RpcFault("invalidParams", { params: { [path]: [message] }, cause });
}

/** Further faults are only counted, since a full request could have a million. */
const maxListed = 1_000;

export class Faults {
  readonly #byPath = new Map<string, string[]>();
  #unlisted = 0;

  get any(): boolean {
    return this.#byPath.size > 0;
  }

  /** `path` is dotted and relative to the params: `inputs.boiler.enumValues.10000`. */
  add(path: string, message: string): void {
    const messages = this.#byPath.get(path);
    if (messages) {
      if (!messages.includes(message)) messages.push(message);
    } else if (this.#byPath.size < maxListed) this.#byPath.set(path, [message]);
    else this.#unlisted++;
  }

  /** Adds the issues of a schema about `value` at `path`. */
  addIssues(path: string, error: z.core.$ZodError, value: unknown): void {
    for (const issue of error.issues) this.#addIssue(path, issue, value);
  }

  /** Throws -32602 with all faults, if any. */
  throwIfAny(): void {
    if (!this.any) return;
    const params = Object.fromEntries(this.#byPath);
    if (this.#unlisted > 0) params["*"] = [`${this.#unlisted} more faults are not listed`];
    throw new RpcFault("invalidParams", { params });
  }

  #addIssue(path: string, issue: z.core.$ZodIssue, value: unknown): void {
    const at = [path, ...issue.path.map(String)].filter((part) => part !== "").join(".");
    if (issue.code === "unrecognized_keys") for (const key of issue.keys) this.add(`${at}.${key}`, "unknown field");
    else if (issue.code === "invalid_key") for (const inner of issue.issues) this.add(at, inner.message);
    else this.add(at, memberOf(value, issue.path) === undefined ? "required" : issueText(issue));
  }
}

function memberOf(value: unknown, path: readonly PropertyKey[]): unknown {
  let member = value;
  for (const key of path)
    member =
      typeof member === "object" && member !== null ? Object.getOwnPropertyDescriptor(member, key)?.value : undefined;
  return member;
}

function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === "invalid_value")
    return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
  return issue.code === "invalid_type" ? `must be ${articleFor[issue.expected] ?? issue.expected}` : issue.message;
}

const articleFor: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "an integer",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};
