// Times as payloads carry them. Pure.

/** Names of the formats a payload's time may have. */
export const timeFormats = ["auto", "unixS", "unixMs", "unixUs", "unixNs", "iso"] as const;
export type TimeFormat = (typeof timeFormats)[number];
