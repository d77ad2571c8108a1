// What goes into the `Authorization` header.

export interface Credentials extends AsyncDisposable {
  /**
   * The header's value. Rejects with `SERVICE_REFUSED` when there are no credentials or the issuer refuses them, with
   * `SERVICE_UNREACHABLE` when it does not answer, or with `signal.reason`.
   */
  authorization(signal: AbortSignal): Promise<string>;
  /**
   * The service does not take this value (401), or does not permit what was asked with it: rights given since it was issued
   * may be in the next one. True when the next one will be another one.
   */
  renew(authorization: string, lacking: "validity" | "rights"): boolean;
}

export function basicAuthorization(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`, "utf8").toString("base64")}`;
}

/** Shorter ones would take half of the text along. */
const shortest = 4;

/**
 * What the other side says, without the credentials it was shown: proxies and services under test give back the request
 * that they refuse. The header's value without its scheme is looked for, and the password in it.
 */
export function withoutCredentials(text: string, authorization: string): string {
  const [scheme, credential = ""] = authorization.split(" ");
  const decoded = scheme === "Basic" ? Buffer.from(credential, "base64").toString("utf8") : "";
  const password = decoded.slice(decoded.indexOf(":") + 1);
  const known = [credential, password, JSON.stringify(password).slice(1, -1), encodeURIComponent(password)];
  return known.filter(({ length }) => length >= shortest).reduce((shown, one) => shown.replaceAll(one, "***"), text);
}
