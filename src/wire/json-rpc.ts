// The envelope of a response: JSON-RPC 2.0, one call at a time.
import { z } from "zod";
import { rpcErrorObject } from "./rpc-error.ts";

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
