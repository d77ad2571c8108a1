// JSON-RPC 2.0 responses without batches, error codes and the shape of an error.
import { z } from "zod";

/** Error codes of JSON-RPC and those that the service adds. */
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
  /** Temporary: the same request may succeed later. */
  tryAgain: { code: -32015, message: "Try again" },
  /** Partial success: see `data.partialResult` and `data.invalidResources`. */
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

/** The `error` member of a response. Other members are ignored; `data` and its members may be missing or malformed. */
const rpcErrorObject = z.object({
  code: z.int(),
  message: z.string(),
  data: z
    .object({
      /** Identifies the request in the service's log. */
      trace: z.string().optional().catch(undefined),
      /** Dotted path of each fault → its description: `data.series.boiler` → `not same length as times`. */
      params: messagesByPath.optional().catch(undefined),
      invalidResources: z.array(invalidResource).optional().catch(undefined),
      /** Result of the successful part, in the shape of the method's result. */
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
  /** Null if the service could not parse the request up to its `id`. */
  id: z.union([z.string(), z.number(), z.null()]),
  error: rpcErrorObject,
});

/** Body of a response with a status of success. */
export const rpcResponse = z.union([rpcSuccess, rpcFailure]);
