// What a method is given, and what it gives back.
import type { ApiVersion, Grant } from "../../wire/method.ts";
import type { ServiceStore } from "../store/store.ts";

/** Who calls: an integration whose credentials were right. */
export interface Caller {
  readonly integration: string;
  readonly grants: readonly Grant[];
}

export interface MethodCall {
  readonly params: Readonly<Record<string, unknown>>;
  readonly caller: Caller;
  readonly version: ApiVersion;
  /** Wall time of the service, microseconds since the epoch. */
  readonly now: number;
  readonly store: ServiceStore;
  /** Input IDs that an insert is to refuse, for drills. */
  readonly refusedInputs: readonly string[];
}

/** Throws `RpcFault`; then the store is as it was. */
export type MethodHandler = (call: MethodCall) => object;
