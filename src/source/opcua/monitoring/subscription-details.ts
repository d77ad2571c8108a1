// What the status page shows of the subscriptions of a connection.
import type { Subscription } from "./subscription.ts";

/** Of several subscriptions what differs, the fastest first. */
export function subscriptionDetails(subscriptions: readonly Subscription[]) {
  const all = (text: (subscription: Subscription) => string) => [...new Set(subscriptions.map(text))].join(", ");
  return {
    publishing: all(({ publishingMs, wanted }) => {
      const slower = publishingMs > wanted.publishingMs ? ` (asked for ${wanted.publishingMs} ms)` : "";
      return `${publishingMs} ms${slower}`;
    }),
    keepAlive: all(({ publishingMs, keepAliveCount }) => `${publishingMs * keepAliveCount} ms`),
    lifetime: all(({ publishingMs, lifetimeCount, wanted }) => {
      const [given, asked] = [publishingMs * lifetimeCount, wanted.publishingMs * wanted.lifetimeCount];
      return `${given} ms${given < asked ? ` (asked for ${asked} ms)` : ""}`;
    }),
    subscription: all(({ origin }) => origin),
  };
}
