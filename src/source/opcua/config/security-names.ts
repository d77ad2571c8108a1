// Security modes and policies by the names of the configuration, and as the protocol has them.

/** MessageSecurityMode (OPC 10000-4, 7.20). */
export const modes = { none: 1, sign: 2, signAndEncrypt: 3 } as const;

const prefix = "http://opcfoundation.org/UA/SecurityPolicy#";

export function policyUri(name: string): string {
  return prefix + name;
}

/** Empty: there is none. */
export function policyName(uri: string | null): string {
  return uri?.split("#")[1] ?? "";
}
