// Protection of an OPC UA channel, as named in configuration, flags and answers.

/** `sign`: messages cannot be modified in transit. `signAndEncrypt`: they also cannot be read. */
export const securityModes = ["none", "sign", "signAndEncrypt"] as const;
export type SecurityMode = (typeof securityModes)[number];
