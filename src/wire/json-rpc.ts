// The envelope of a response (JSON-RPC 2.0, one call at a time), error numbers, and the shape of an error.
import { z } from "zod";

/** JSON-RPC's own numbers and those that the service adds. */
export const rpcErrors = {
  parseError: { code: -32700, message: "Parse error" },
  invalidRequest: { code: -32600, message: "Invalid request" },
  methodNotFound: { code: -32601, message: "Method not found" },
  invalidParams: { code: -32602, message: "Invalid params" },
  internalError: { code: -32603, message: "Internal error" },
  serverError: { code: -32000, message: "Server error" },
  produceInvalidResource: { code: -32001, message: "Produces an invalid resource" },
  foundInvalidResource: { code: -32002, message: "Found an invalid resource" },
  forbidden: { code: -32003, message: "Operation not permitted" },
  conflict: { code: -32009, message: "Conflict" },
  /** Temporary: the same request may go through later. */
  tryAgain: { code: -32015, message: "Try again" },
  /** Part of the work is done: see `data.partialResult` and `data.invalidResources`. */
  partialFailure: { code: -32021, message: "Partial failure" },
} as const satisfies Record<string, { code: number; message: string }>;

export type RpcErrorName = keyof typeof rpcErrors;

const messagesByPath = z.record(z.string(), z.array(z.string()));

const invalidResource = z.object({
  id: z.string().optional(),
  type: z.string(),
  message: z.string(),
  invalidFields: messagesByPath.optional(),
});
export type InvalidResource = z.output<typeof invalidResource>;

/** The `error` member of a response. Members beyond these are ignored; `data` and each of its members may be missing or of another shape. */
export const rpcErrorObject = z.object({
  code: z.int(),
  message: z.string(),
  data: z
    .object({
      /** Names the request in the service's log. */
      trace: z.string().optional().catch(undefined),
      /** Dotted path of each fault → what is wrong with it: `data.series.boiler` → `not same length as times`. */
      params: messagesByPath.optional().catch(undefined),
      invalidResources: z.array(invalidResource).optional().catch(undefined),
      /** A result of the method's shape, for what succeeded. */
      partialResult: z.unknown().optional(),
    })
    .optional()
    .catch(undefined),
});
export type RpcErrorObject = z.output<typeof rpcErrorObject>;

const rpcSuccess = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]),
  result: z.record(z.string(), z.unknown()),
  error: z.null().optional(),
});

const rpcFailure = z.object({
  jsonrpc: z.literal("2.0"),
  /** Null where the request could not be read far enough. */
  id: z.union([z.string(), z.number(), z.null()]),
  error: rpcErrorObject,
});

/** What a client reads from HTTP 200. */
export const rpcResponse = z.union([rpcSuccess, rpcFailure]);
