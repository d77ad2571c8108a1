// Which credentials the configuration asks for: a password, or a token from a credentials file.
import type { Runtime } from "../../core/runtime.ts";
import { ClientCredentials } from "./client-credentials.ts";
import { basicAuthorization, type Credentials } from "./credentials.ts";
import type { ServiceOptions } from "./options.ts";

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
