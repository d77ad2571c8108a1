// The methods of the interface: their names, versions, rates and sizes.

/**
 * Versions as the agent sends them in `X-API-Version`, oldest first. `1.0` and `1.1beta1` speak the specification's dialect,
 * `1.1` the current one of the hosted service. The path segment `v1` is the same for all of them.
 */
export const apiVersions = ["1.0", "1.1beta1", "1.1"] as const;
export type ApiVersion = (typeof apiVersions)[number];

/** Versions that the local service answers: its clients are others as well. */
export const servedVersions = [...apiVersions, "1.2beta1", "1.2"] as const;
export type ServedVersion = (typeof servedVersions)[number];

/** What a request without `X-API-Version` gets. */
export const newestStable: ServedVersion = "1.1";

export const versionHeader = "x-api-version";

/** Other versions that public clients send, and the one that answers them. */
export const otherVersions: Readonly<Record<string, ServedVersion>> = {
  "1.1beta2": "1.1",
  "1.1rc1": "1.1",
  "1.2alpha1": "1.2beta1",
};

export function isServedVersion(text: string): text is ServedVersion {
  return servedVersions.some((version) => version === text);
}

/** Whether `version` is `since` or a later one. */
export function isSince(version: ServedVersion, since: ServedVersion): boolean {
  return servedVersions.indexOf(version) >= servedVersions.indexOf(since);
}

/** By canonical name, as the specification spells it: requests per second before 1.1, and from then on. */
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

/** Names that 1.2 has for methods besides the canonical ones. */
export const renamedMethods: Readonly<Record<string, Method>> = {
  "integration.signals.save": "integration.saveSignals",
  "admin.signals.select": "admin.selectSignals",
  "admin.signals.publish": "admin.publishSignals",
  "admin.signals.connect": "admin.connectSignals",
  "admin.signals.disconnect": "admin.disconnectSignals",
  "platform.items.select": "platform.selectItems",
};

/** What an integration must have been granted; `integration.*` is open to every one. */
export const grants = ["admin", "platform"] as const;
export type Grant = (typeof grants)[number];

/** The name as it goes over the wire where the platform namespace is called `namespace`. */
export function wireName(method: Method, namespace: string): string {
  return method.startsWith("platform.") ? `${namespace}${method.slice("platform".length)}` : method;
}

/** The grant `method` needs. */
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

/** The largest request that any method takes in `version`. */
export function largestRequestBytes(version: ServedVersion): number {
  return (version === "1.1beta1" ? 9 : 8) * 2 ** 20;
}

/** Behaviour of the hosted service above the rate: calls wait, and time out after these. Clients must be more patient. */
export const queueTimeouts = { queuedMs: 10_000, totalMs: 15_000 } as const;

/** Entries of a query that names no limit. */
export const defaultLimit = 10;

/** Entries a query may ask for. */
export const maxSelected = { signals: 1_000, items: 1_000, itemsWithData: 50 } as const;
