// Weaknesses that servers do not tell of when they are asked, by the product. What a server tells (limits, services that
// it does not have, sizes that it revises) is found out at each connection, and stands nowhere in here. Pure.

/** Who made the server (BuildInfo, OPC 10000-5, 12.4). */
export interface Product {
  readonly name: string;
  readonly uri: string;
  readonly manufacturer: string;
  readonly version: string;
}

export interface ServerProfile {
  /** As it is shown. */
  readonly weakness: string;
  /** Does not mark the value before which it threw others away: a queue that comes full may have been too short. */
  readonly overflowUntold: boolean;
}

interface Known extends ServerProfile {
  readonly fits: (product: Product) => boolean;
}

const overflowUntold = {
  weakness: "does not tell what its queues throw away: a queue that comes full counts as one that was too short",
  overflowUntold: true,
} as const;

const known: readonly Known[] = [
  // Its queue drops the oldest value without a mark (asyncua 2.1, internal_subscription.py); opcua is the older package.
  { ...overflowUntold, fits: ({ manufacturer, uri }) => manufacturer === "FreeOpcUa" || uri.includes("freeopcua") },
  // The mark came with 1.0 (issue 1505 of open62541).
  { ...overflowUntold, fits: ({ uri, version }) => uri.includes("open62541") && /^v?0\./.test(version) },
];

/** What is known of a product. Undefined: nothing to heed. */
export function profileOf(product: Product): ServerProfile | undefined {
  return known.find(({ fits }) => fits(product));
}
