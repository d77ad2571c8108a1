// The operations of the interface by name. The platform namespace has a prefix of its own on each installation.

/** Canonical names, as the specification spells them. */
export const methods = [
  "integration.insert",
  "integration.saveSignals",
  "admin.selectSignals",
  "admin.publishSignals",
  "platform.selectItems",
  "platform.dataFrame",
  "platform.evaluate",
] as const;
export type Method = (typeof methods)[number];

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
