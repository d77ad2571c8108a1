// Methods of the service: names, versions, rates and size limits.

/**
 * Versions that the agent may send in `X-API-Version`, oldest first. `1.0` and `1.1beta1` follow the specification,
 * `1.1` is the current dialect of the hosted service. The path segment `v1` is the same for all.
 */
export const apiVersions = ["1.0", "1.1beta1", "1.1"] as const;
export type ApiVersion = (typeof apiVersions)[number];

/** Versions that the local service accepts, since it also serves other clients. */
export const servedVersions = [...apiVersions, "1.2beta1", "1.2"] as const;
export type ServedVersion = (typeof servedVersions)[number];

/** Version of a request without `X-API-Version`. */
export const newestStable: ServedVersion = "1.1";

export const versionHeader = "x-api-version";

/** Further versions that public clients send → the version with which they are answered. */
export const otherVersions: Readonly<Record<string, ServedVersion>> = {
  "1.1beta2": "1.1",
  "1.1rc1": "1.1",
  "1.2alpha1": "1.2beta1",
};

export function isServedVersion(text: string): text is ServedVersion {
  return servedVersions.some((version) => version === text);
}

export function isSince(version: ServedVersion, since: ServedVersion): boolean {
  return servedVersions.indexOf(version) >= servedVersions.indexOf(since);
}

/** Canonical name, as in the specification → requests per second before 1.1, and since 1.1. */
const rates = {
  "integration.insert": [1, 1],
  "integration.saveSignals": [1, 1],
  "admin.selectSignals": [10, 10],
  "admin.publishSignals": [10, 5],
  "admin.connectSignals": [5, 5],
  "admin.disconnectSignals": [5, 5],
  "platform.selectItems": [10, 10],
  "platform.dataFrame": [1, 1],
  "platform.evaluate": [1, 1],
} as const;
export type Method = keyof typeof rates;
export const methods = Object.keys(rates) as readonly Method[]; // the keys of a literal

/** Additional names of methods in 1.2. */
export const renamedMethods: Readonly<Record<string, Method>> = {
  "integration.signals.save": "integration.saveSignals",
  "admin.signals.select": "admin.selectSignals",
  "admin.signals.publish": "admin.publishSignals",
  "admin.signals.connect": "admin.connectSignals",
  "admin.signals.disconnect": "admin.disconnectSignals",
  "platform.items.select": "platform.selectItems",
};

/** Grants that an integration may need. `integration.*` needs none. */
export const grants = ["admin", "platform"] as const;
export type Grant = (typeof grants)[number];

/** The method's name on the wire; `namespace` replaces `platform`. */
export function wireName(method: Method, namespace: string): string {
  return method.startsWith("platform.") ? `${namespace}${method.slice("platform".length)}` : method;
}

export function grantOf(method: Method): Grant | undefined {
  return grants.find((grant) => method.startsWith(`${grant}.`));
}

interface RequestLimits {
  /** UTF-8 bytes of the uncompressed JSON request, envelope included. */
  readonly maxRequestBytes: number;
  readonly requestsPerSecond: number;
}

export function requestLimits(method: Method, version: ServedVersion): RequestLimits {
  const savesViews = method === "integration.saveSignals" || method === "admin.publishSignals";
  return {
    maxRequestBytes: largestRequestBytes(savesViews ? version : "1.1"),
    requestsPerSecond: rates[method][isSince(version, "1.1") ? 1 : 0],
  };
}

/** The largest request body of any method in `version`, in bytes. */
export function largestRequestBytes(version: ServedVersion): number {
  return (version === "1.1beta1" ? 9 : 8) * 2 ** 20;
}

/** The hosted service queues calls above the rate, and times them out after these limits. Clients must wait longer. */
export const queueTimeouts = { queuedMs: 10_000, totalMs: 15_000 } as const;

/** Entries in the answer to a query without a limit. */
export const defaultLimit = 10;

/** Largest limit that a query may set. */
export const maxSelected = { signals: 1_000, items: 1_000, itemsWithData: 50 } as const;
