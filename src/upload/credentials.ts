// What goes into the `Authorization` header.
import type { ServiceOptions } from "./options.ts";

export interface Credentials {
  /** The header's value. Rejects with `signal.reason`. */
  authorization(signal: AbortSignal): Promise<string>;
}

export function credentialsOf({ auth, integration }: ServiceOptions): Credentials {
  const { username = integration, password } = auth.basic;
  return {
    authorization: async () => `Basic ${Buffer.from(`${username}:${password.reveal()}`, "utf8").toString("base64")}`,
  };
}
