// Executes a JSON-RPC request: parses it, finds the method, checks rights, calls, and serialises the response.
import { attempt } from "../../lib/flow/attempt.ts";
import type { Steps } from "../../lib/flow/in-slices.ts";
import { rpcErrors } from "../../wire/json-rpc.ts";
import { grantOf, isSince, type Method, methods, renamedMethods, type ServedVersion } from "../../wire/method.ts";
import { readInsert } from "../call/insert-reader.ts";
import { checkShape, isGiven, isRecord, type Members, type MethodCall, type MethodHandler } from "../call/params.ts";
import { Faults, invalidParams, RpcFault } from "../call/rpc-fault.ts";
import type { ServiceStore } from "../store/store.ts";
import { evaluate } from "./evaluate.ts";
import { connectSignals, disconnectSignals, insert, publishSignals, saveSignals } from "./save.ts";
import { selectDataFrame, selectItems, selectSignals } from "./select.ts";

/** A request as the HTTP layer passes it on. */
export interface RpcInput extends Pick<MethodCall, "caller" | "version" | "now" | "refusedInputs"> {
  readonly body: Uint8Array<ArrayBuffer>;
  /** As found by `scanEnvelope`. */
  readonly method: string | undefined;
  /** JSON text of the id; undefined for a notification. */
  readonly id: string | undefined;
  /** Prefix of the platform methods. */
  readonly namespace: string;
  /** Identifies the request in errors and logs. */
  readonly trace: string;
}

export interface RpcOutput {
  /** Undefined: a notification, which has no response. */
  readonly body: string | undefined;
  /** An internal error of the service, for the log. */
  readonly failure?: string;
}

type Operation = readonly [
  MethodHandler,
  effect: "reads" | "writes",
  since: ServedVersion,
  positions: readonly string[],
];

/** Handler, effect, first version, and names of positional params for each method. */
const operations: Readonly<Record<Method, Operation>> = {
  "integration.insert": [insert, "writes", "1.0", ["integration", "data"]],
  "integration.saveSignals": [saveSignals, "writes", "1.0", ["integration", "inputs", "createOnly"]],
  "admin.selectSignals": [selectSignals, "reads", "1.1beta1", ["integration", "signals", "items"]],
  "admin.publishSignals": [publishSignals, "writes", "1.1beta1", ["integration", "itemsBySignal", "createOnly"]],
  "admin.connectSignals": [connectSignals, "writes", "1.2beta1", []],
  "admin.disconnectSignals": [disconnectSignals, "writes", "1.2beta1", []],
  "platform.selectItems": [selectItems, "reads", "1.1beta1", ["items", "data"]],
  "platform.dataFrame": [selectDataFrame, "reads", "1.1", ["query", "data", "include", "format"]],
  "platform.evaluate": [evaluate, "reads", "1.1", ["items", "calculations", "data", "include", "format"]],
};

/** Whether any thread with read access to the store can handle the method. */
export function onlyReads(method: Method): boolean {
  return operations[method][1] === "reads";
}

/** Whether the call is an insert that `readInsert` parses, and `dispatch` therefore yields. */
export function isLargeInsert({ body, method, namespace }: RpcInput): boolean {
  return body.length > 65_536 && methodOf(method, namespace) === "integration.insert";
}

/** Never throws. Only large inserts yield; only one of them may be in progress. Their changes come in the last step. */
export function* dispatch(input: RpcInput, store: ServiceStore): Steps<RpcOutput> {
  const id = input.id ?? "null";
  try {
    const result = call(yield* parse(input), input, store);
    const body = `{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}`;
    return { body: input.id === undefined ? undefined : body };
  } catch (error) {
    const fault = error instanceof RpcFault ? error : new RpcFault("internalError", { cause: error });
    const described = error instanceof Error ? (error.stack ?? error.message) : String(error);
    const failure = fault.code === rpcErrors.internalError.code ? { failure: described } : {};
    // An invalid request may not have been meant as a notification, so it is answered.
    const unreadable = fault.code === rpcErrors.parseError.code || fault.code === rpcErrors.invalidRequest.code;
    if (input.id === undefined && !unreadable) return { body: undefined, ...failure };
    const { code, message, details } = fault;
    const answer = JSON.stringify({ code, message, data: { trace: input.trace, ...details } });
    // The scanned text of an id may be no JSON.
    const echoed = unreadable && attempt(() => JSON.parse(id)) === undefined ? "null" : id;
    return { body: `{"jsonrpc":"2.0","id":${echoed},"error":${answer}}`, ...failure };
  }
}

/** The canonical method of a client's name, ignoring case and resolving documented aliases. */
export function methodOf(name: string | undefined, namespace: string): Method | undefined {
  const canonical = canonicalName(name, namespace);
  if (canonical === "admin.selectsignal") return "admin.selectSignals";
  return renamedIn12(canonical) ?? methods.find((method) => method.toLowerCase() === canonical);
}

/** In lower case and with the prefix `platform.`. */
function canonicalName(name: string | undefined, namespace: string): string | undefined {
  const lower = name?.toLowerCase() ?? "";
  const prefix = `${namespace.toLowerCase()}.`;
  if (lower.startsWith(prefix)) return `platform.${lower.slice(prefix.length)}`;
  return lower.startsWith("platform.") ? undefined : lower;
}

function renamedIn12(canonical: string | undefined): Method | undefined {
  return canonical !== undefined && Object.hasOwn(renamedMethods, canonical) ? renamedMethods[canonical] : undefined;
}

function* parse(input: RpcInput): Steps<Members> {
  const { body, method, id } = input;
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const request = (isLargeInsert(input) ? yield* readInsert(bytes) : undefined) ?? parseJson(bytes);
  if (Array.isArray(request)) throw invalidRequest("batches are not supported");
  if (!isRecord(request)) throw invalidRequest("must be an object");
  if (request["jsonrpc"] !== "2.0") throw invalidRequest('jsonrpc must be "2.0"');
  if (typeof request["method"] !== "string") throw invalidRequest("method must be a text");
  // The call was admitted by the method and id before the params.
  const found: unknown = JSON.parse(id ?? "null");
  const parsed = request["id"] ?? null;
  const sameId = typeof found === "object" && found !== null ? typeof parsed === "object" : found === parsed;
  if (request["method"] !== method || !sameId) throw invalidRequest("method or id is repeated");
  return request;
}

function invalidRequest(reason: string): RpcFault {
  return new RpcFault("invalidRequest", { message: `Invalid request: ${reason}` });
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (cause) {
    throw new RpcFault("parseError", { message: "Parse error: the body is not JSON", cause });
  }
}

function call(request: Members, input: RpcInput, store: ServiceStore): object {
  const { caller, version, now, namespace, refusedInputs } = input;
  const name = String(request["method"]);
  const method = methodOf(name, namespace);
  if (!method) throw new RpcFault("methodNotFound");
  const [handler, , since, positions] = operations[method];
  const nameSince = renamedIn12(canonicalName(name, namespace)) === undefined ? since : "1.2";
  if (!isSince(version, nameSince)) throw new RpcFault("methodNotFound");
  const grant = grantOf(method);
  if (grant && !caller.grants.includes(grant))
    throw new RpcFault("forbidden", {
      message: `Operation not permitted: integration ${caller.integration} has no access to the ${grant} namespace`,
    });
  const params = named(request["params"], positions);
  const faults = new Faults();
  checkShape(params, faults);
  return handler({ params, faults, caller, version, now, store, refusedInputs });
}

function named(params: unknown, positions: readonly string[]): Members {
  if (!isGiven(params)) return {};
  if (isRecord(params)) return params;
  if (!Array.isArray(params)) throw invalidRequest("params must be an object or an array");
  const { length } = positions;
  if (params.length > length)
    throw invalidParams(String(length), length === 0 ? "takes params by name alone" : `takes ${length} params`);
  return Object.fromEntries(params.map((value: unknown, index) => [positions[index], value]));
}
