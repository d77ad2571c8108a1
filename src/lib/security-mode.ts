// What protects a channel, in the words of configuration, flags and answers.

/** `sign`: messages cannot be changed on the way; `signAndEncrypt`: nor read. */
export const securityModes = ["none", "sign", "signAndEncrypt"] as const;
export type SecurityMode = (typeof securityModes)[number];
