// The envelope of every request and response: JSON-RPC 2.0, one call at a time.
import { z } from "zod";
import { rpcErrorObject } from "./rpc-error.ts";

export const rpcRequest = z.object({
  jsonrpc: z.literal("2.0"),
  method: z.string(),
  /** Absent or null makes it a notification: no body comes back, HTTP 204. */
  id: z.unknown().optional(),
  params: z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]).optional(),
});
export type RpcRequest = z.output<typeof rpcRequest>;

export const rpcSuccess = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.union([z.string(), z.number()]),
  result: z.record(z.string(), z.unknown()),
  error: z.null().optional(),
});
export type RpcSuccess = z.output<typeof rpcSuccess>;

export const rpcFailure = z.object({
  jsonrpc: z.literal("2.0"),
  /** Null where the request could not be read far enough. */
  id: z.union([z.string(), z.number(), z.null()]),
  error: rpcErrorObject,
});
export type RpcFailure = z.output<typeof rpcFailure>;

/** What a client reads from HTTP 200. */
export const rpcResponse = z.union([rpcSuccess, rpcFailure]);
export type RpcResponse = z.output<typeof rpcResponse>;
