// Versions of the interface, as sent in `X-API-Version`. The path segment `v1` is the same for all of them.

/** Oldest first. `1.0` and `1.1beta1` speak the specification's dialect, `1.1` the current one of the hosted service. */
export const apiVersions = ["1.0", "1.1beta1", "1.1"] as const;
export type ApiVersion = (typeof apiVersions)[number];

/** What a request without `X-API-Version` gets. */
export const newestStable: ApiVersion = "1.1";

export const versionHeader = "x-api-version";

/** Versions around a release that public clients send, and the release that answers them. */
export const otherVersions: Readonly<Record<string, ApiVersion>> = {
  "1.1beta2": "1.1",
  "1.1rc1": "1.1",
  "1.2alpha1": "1.1",
};

export function isApiVersion(text: string): text is ApiVersion {
  return apiVersions.some((version) => version === text);
}
