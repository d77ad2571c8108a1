// What goes into the `Authorization` header.

export interface Credentials extends AsyncDisposable {
  /**
   * The header's value. Rejects with `SERVICE_REFUSED` when there are no credentials or the issuer refuses them, with
   * `SERVICE_UNREACHABLE` when it does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /** The service answered 401 to this value. True when the next one will be another one. */
  renew(authorization: string): boolean;
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}
