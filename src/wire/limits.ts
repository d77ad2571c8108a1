// How often a method may be called and how large its request may be.

import { unreachable } from "../core/unreachable.ts";
import type { ApiVersion } from "./api-version.ts";
import type { Method } from "./method.ts";

interface RequestLimits {
  /** UTF-8 bytes of the uncompressed JSON request, envelope included. */
  readonly maxRequestBytes: number;
  readonly requestsPerSecond: number;
}

const MiB = 2 ** 20;

export function requestLimits(method: Method, version: ApiVersion): RequestLimits {
  return { maxRequestBytes: maxRequestBytes(method, version), requestsPerSecond: requestsPerSecond(method, version) };
}

/** The largest request that any method takes in `version`. */
export function largestRequestBytes(version: ApiVersion): number {
  return version === "1.1beta1" ? 9 * MiB : 8 * MiB;
}

function maxRequestBytes(method: Method, version: ApiVersion): number {
  switch (method) {
    case "integration.saveSignals":
    case "admin.publishSignals":
      return largestRequestBytes(version);
    case "integration.insert":
    case "admin.selectSignals":
    case "platform.selectItems":
    case "platform.dataFrame":
    case "platform.evaluate":
      return 8 * MiB;
    default:
      return unreachable(method);
  }
}

function requestsPerSecond(method: Method, version: ApiVersion): number {
  switch (method) {
    case "integration.insert":
    case "integration.saveSignals":
    case "platform.dataFrame":
    case "platform.evaluate":
      return 1;
    case "admin.publishSignals":
      return version === "1.1" ? 5 : 10;
    case "admin.selectSignals":
    case "platform.selectItems":
      return 10;
    default:
      return unreachable(method);
  }
}

/** Behaviour of the hosted service above the rate: calls wait, and time out after these. Clients must be more patient. */
export const queueTimeouts = { queuedMs: 10_000, totalMs: 15_000 } as const;

/** Entries of a query that names no limit. */
export const defaultLimit = 10;

/** Entries a query may ask for. */
export const maxSelected = { signals: 1_000, items: 1_000, itemsWithData: 50 } as const;
