// What goes into the `Authorization` header: a password, or a token from a credentials file.
import type { Runtime } from "../core/runtime.ts";
import { ClientCredentials } from "./client-credentials.ts";
import type { ServiceOptions } from "./options.ts";

export interface Credentials extends AsyncDisposable {
  /**
   * The header's value. Rejects with `SERVICE_REFUSED` when there are no credentials or the issuer refuses them, with
   * `SERVICE_UNREACHABLE` when it does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /** The service answered 401 to this value. True when the next one will be another one. */
  renew(authorization: string): boolean;
}

/** `tokenPath`: where a token is kept across restarts. */
export async function openCredentials(
  options: ServiceOptions,
  tokenPath: string,
  runtime: Runtime,
): Promise<Credentials> {
  const { auth, integration, proxy, caFile } = options;
  if (auth.clientCredentials)
    return ClientCredentials.open({ ...auth.clientCredentials, integration, proxy, caFile, tokenPath }, runtime);
  const { username = integration, password } = auth.basic ?? {};
  return {
    authorization: async () => basicAuthorization(username, password?.reveal() ?? ""),
    renew: () => false,
    async [Symbol.asyncDispose]() {},
  };
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
